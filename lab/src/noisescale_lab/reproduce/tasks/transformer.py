"""The next characters of a sequence, by small transformers: from nothing, and fine-tuned to another text.

R replicas, B examples, T characters of one.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from pydoc_data.topics import topics

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.losses import sequence_cross_entropy
from noisescale_lab.reproduce.stacked.optimizers import ADAM, ADAMW
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, pick
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.text import NUM_CHARACTERS, load, split
from noisescale_lab.reproduce.trainer import Replicas, advance

EVALUATION_SEQUENCES = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """One causal block, norms without weights before its parts.

    Attributes:
        context: T.
        width: Of the stream.
        num_heads: Of the attention.
        hidden: Width of the GELU layer.
    """

    context: int
    width: int
    num_heads: int
    hidden: int

    def weights(self) -> dict[str, Weight]:
        """Its tensors by name."""
        width, hidden = self.width, self.hidden
        return {
            "characters": Weight((NUM_CHARACTERS, width), 1.0),
            "positions": Weight((self.context, width), 0.1),
            "queries_keys_values": Weight((width, 3 * width), width**-0.5),
            "mixed": Weight((width, width), width**-0.5),
            "up": Weight((width, hidden), (2 / width) ** 0.5),
            "up_bias": Weight((hidden,), 0.0),
            "down": Weight((hidden, width), hidden**-0.5),
            "down_bias": Weight((width,), 0.0),
            "logits": Weight((width, NUM_CHARACTERS), width**-0.5),
            "logits_bias": Weight((NUM_CHARACTERS,), 0.0),
        }

    def model(self) -> FunctionalModel:
        """Of these weights."""
        return FunctionalModel(self.weights(), partial(predict, self))


LARGE = Shape(context=32, width=32, num_heads=4, hidden=128)
SMALL = Shape(context=16, width=24, num_heads=3, hidden=48)
"""A long run of it takes seconds."""


def predict(shape: Shape, weights: dict[str, Tensor], text: Tensor) -> Tensor:
    """Logits of the character after each of a sequence's, [R, B, T, characters].

    Args:
        shape: Of the model.
        weights: By name, each with a leading axis R.
        text: Characters, [R, B, T].
    """
    replicas, batch, length = text.shape
    norm, heads = (shape.width,), shape.num_heads
    rows = text + NUM_CHARACTERS * torch.arange(replicas)[:, None, None]
    stream = weights["characters"].flatten(0, 1)[rows.flatten(1)]
    stream = stream + weights["positions"].repeat(1, batch, 1)
    projected = layer_norm(stream, norm) @ weights["queries_keys_values"]
    split_up = projected.view(replicas * batch, length, 3, heads, shape.width // heads).permute(2, 0, 3, 1, 4)
    attended = scaled_dot_product_attention(split_up[0], split_up[1], split_up[2], is_causal=True)
    stream = stream + attended.transpose(1, 2).reshape(stream.shape) @ weights["mixed"]
    hidden = gelu(layer_norm(stream, norm) @ weights["up"] + weights["up_bias"][:, None])
    stream = stream + hidden @ weights["down"] + weights["down_bias"][:, None]
    logits = layer_norm(stream, norm) @ weights["logits"] + weights["logits_bias"][:, None]
    return logits.view(replicas, batch, length, NUM_CHARACTERS)


def sequences(text: Tensor, start: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Characters from each start and those that follow each of them, both [R, B, T]."""
    places = start[..., None] + torch.arange(context)
    return text[places], text[places + 1]


def charlm_transformer() -> Task:
    """One block of width 32 with four heads, context 32, on Python's source; Adam."""
    return on_text("charlm_transformer", LARGE, load(), targets=(2.7, 2.5, 2.4))


def on_text(name: str, shape: Shape, texts: tuple[Tensor, Tensor], *, targets: tuple[float, ...]) -> Task:
    """A model of this shape on a text, by Adam.

    Args:
        name: The task's.
        shape: The model's.
        texts: To train on, and to evaluate on.
        targets: Evaluation losses to reach.
    """
    training, held_out = texts

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return sequences(training, pick(drawn, len(training) - shape.context), shape.context)

    generator = torch.Generator().manual_seed(0)
    start = torch.randperm(len(held_out) - shape.context, generator=generator)[:EVALUATION_SEQUENCES]
    return Task(
        name=name,
        unit="tokens",
        units_per_example=shape.context,
        network=shape.model(),
        loss=sequence_cross_entropy,
        optimizer=ADAM,
        sample=sample,
        evaluation=sequences(held_out, start[None], shape.context),
        targets=targets,
    )


# Long runs, whose noise is told from small batches, as language models' is.


def charlm_long() -> Task:
    """One block of width 24, context 16, on Python's source; AdamW after a warm-up."""
    task = on_text("charlm_long_adamw", SMALL, load(), targets=(2.4, 2.3, 2.2))
    return replace(task, optimizer=ADAMW, small_batches=4, warm_up=100)


TAUGHT_FOR = 3000
TAUGHT_AT = 0.005
TAUGHT_BATCH = 32


@cache
def taught() -> Tensor:
    """Weights that know Python's source, [P]."""
    task = charlm_long()
    replicas = Replicas.new(task, [7])
    for share in (1.0, 0.3, 0.1):
        advance(
            task, RandomStream(), replicas, seeds=[7], learning_rate=[TAUGHT_AT * share], batch=TAUGHT_BATCH,
            steps=TAUGHT_FOR // 3,
        )  # fmt: skip
    return replicas.parameters[0]


def charlm_finetuned() -> Task:
    """The same model, taught Python's source, goes on with the English of its manual; AdamW after a warm-up."""
    manual = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    task = on_text("charlm_finetuned_adamw", SMALL, split(manual), targets=(2.0, 1.9, 1.8))
    model = replace(SMALL.model(), start=taught)
    return replace(task, network=model, optimizer=ADAMW, small_batches=4, warm_up=100)
