"""The next characters of a sequence, by a small transformer, Adam."""

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.losses import sequence_cross_entropy
from noisescale_lab.reproduce.stacked.optimizers import ADAM
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.text import characters

CONTEXT, WIDTH, NUM_HEADS, HIDDEN = 32, 32, 4, 128
EVALUATION_SEQUENCES = 256
SIZE = characters.NUM_CHARACTERS

WEIGHTS = {
    "characters": Weight((SIZE, WIDTH), 1.0),
    "positions": Weight((CONTEXT, WIDTH), 0.1),
    "queries_keys_values": Weight((WIDTH, 3 * WIDTH), WIDTH**-0.5),
    "mixed": Weight((WIDTH, WIDTH), WIDTH**-0.5),
    "up": Weight((WIDTH, HIDDEN), (2 / WIDTH) ** 0.5),
    "up_bias": Weight((HIDDEN,), 0.0),
    "down": Weight((HIDDEN, WIDTH), HIDDEN**-0.5),
    "down_bias": Weight((WIDTH,), 0.0),
    "logits": Weight((WIDTH, SIZE), WIDTH**-0.5),
    "logits_bias": Weight((SIZE,), 0.0),
}


def predict(weights: dict[str, Tensor], text: Tensor) -> Tensor:
    """Logits of the character after each of a sequence's, [R, B, T, SIZE]: one causal block, norms before its parts.

    Args:
        weights: By name, each with a leading axis R.
        text: Characters, [R, B, T].
    """
    replicas, batch, length = text.shape
    rows = text + SIZE * torch.arange(replicas)[:, None, None]
    stream = weights["characters"].flatten(0, 1)[rows.flatten(1)]
    stream = stream + weights["positions"].repeat(1, batch, 1)
    projected = layer_norm(stream, (WIDTH,)) @ weights["queries_keys_values"]
    heads = projected.view(replicas * batch, length, 3, NUM_HEADS, WIDTH // NUM_HEADS).permute(2, 0, 3, 1, 4)
    attended = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
    stream = stream + attended.transpose(1, 2).reshape(stream.shape) @ weights["mixed"]
    hidden = gelu(layer_norm(stream, (WIDTH,)) @ weights["up"] + weights["up_bias"][:, None])
    stream = stream + hidden @ weights["down"] + weights["down_bias"][:, None]
    logits = layer_norm(stream, (WIDTH,)) @ weights["logits"] + weights["logits_bias"][:, None]
    return logits.view(replicas, batch, length, SIZE)


def sequences(text: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Characters from each start and those that follow each of them, both [R, B, T]."""
    places = start[..., None] + torch.arange(CONTEXT)
    return text[places], text[places + 1]


def task() -> Task:
    """One block of width 32 with four heads, context 32, GELU, norms without weights."""
    training, held_out = characters.load()

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return sequences(training, pick(drawn, len(training) - CONTEXT))

    generator = torch.Generator().manual_seed(0)
    start = torch.randperm(len(held_out) - CONTEXT, generator=generator)[:EVALUATION_SEQUENCES]
    return Task(
        name="charlm_transformer",
        unit="tokens",
        units_per_example=CONTEXT,
        network=FunctionalModel(WEIGHTS, predict),
        loss=sequence_cross_entropy,
        optimizer=ADAM,
        sample=sample,
        evaluation=sequences(held_out, start[None]),
        targets=(2.7, 2.5, 2.4),
    )
