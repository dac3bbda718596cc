"""Tasks on the source text of Python's standard library, a sequence of 96 characters."""

import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.losses import sequence_cross_entropy, softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Embedding, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, SGD, Optimizer
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.reproduce.task import Task

NUM_CHARACTERS = 96
NUM_BYTES = 3_000_000
HELD_OUT_SHARE = 0.1
EVALUATION_SIZE = 2048
FIRST_PRINTABLE, LAST_PRINTABLE = 32, 126

MLP_CONTEXT, MLP_WIDTH, MLP_HIDDEN = 8, 8, 64

CONTEXT, WIDTH, NUM_HEADS, HIDDEN = 32, 32, 4, 128
EVALUATION_SEQUENCES = 256
SIZE = NUM_CHARACTERS

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


@cache
def load() -> tuple[Tensor, Tensor]:
    """Characters to train on, and the held-out tenth that follows them.

    Top-level modules sorted by name; bytes 32 to 126 become 0 to 94, all others 95.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    source = b"\n".join(path.read_bytes() for path in sorted(folder.glob("*.py")))[:NUM_BYTES]
    values = np.frombuffer(source, dtype=np.uint8)
    is_printable = (values >= FIRST_PRINTABLE) & (values <= LAST_PRINTABLE)
    codes = torch.from_numpy(np.where(is_printable, values - FIRST_PRINTABLE, NUM_CHARACTERS - 1).astype(np.int64))
    held_out = int(len(codes) * HELD_OUT_SHARE)
    return codes[:-held_out], codes[-held_out:]


def at(text: Tensor, start: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """So many characters from each start, [R, B, context], and the character that follows, [R, B]."""
    return text[start[..., None] + torch.arange(context)], text[start + context]


def sampler(context: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """From keys to positions of the training text."""
    text, _ = load()

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return at(text, pick(drawn, len(text) - context), context)

    return sample


def evaluation(context: int) -> tuple[Tensor, Tensor]:
    """Fixed positions of the held-out text."""
    _, text = load()
    start = torch.randperm(len(text) - context, generator=torch.Generator().manual_seed(0))[:EVALUATION_SIZE]
    return at(text, start[None], context)


# The next character from the last one, by a table of logits that starts at zero.


def char_bigram(name: str, optimizer: Optimizer) -> Task:
    """One-hot character times a matrix; the same as a row of a table."""
    return Task(
        name=name,
        unit="tokens",
        network=Network((), Embedding(NUM_CHARACTERS, NUM_CHARACTERS, context=1), starts_at_zero=True),
        loss=softmax_cross_entropy,
        optimizer=optimizer,
        sample=sampler(1),
        evaluation=evaluation(1),
        targets=(3.0, 2.8, 2.7),
    )


def bigram_with_sgd() -> Task:
    """By SGD: limited by curvature, as rare characters learn slowly."""
    return char_bigram("char_bigram", SGD)


def bigram_with_adam() -> Task:
    """By Adam."""
    return char_bigram("char_bigram_adam", ADAM)


# The next character from the last eight, by a small network.


def charlm_mlp(name: str, optimizer: Optimizer) -> Task:
    """Eight-dimensional embeddings of eight characters, 64 ReLU."""
    size = NUM_CHARACTERS
    return Task(
        name=name,
        unit="tokens",
        network=Network(
            (Dense(MLP_CONTEXT * MLP_WIDTH, MLP_HIDDEN, "relu"), Dense(MLP_HIDDEN, size)),
            Embedding(size, MLP_WIDTH, MLP_CONTEXT),
        ),
        loss=softmax_cross_entropy,
        optimizer=optimizer,
        sample=sampler(MLP_CONTEXT),
        evaluation=evaluation(MLP_CONTEXT),
        targets=(2.8, 2.5, 2.35),
    )


def mlp_with_sgd() -> Task:
    """By SGD."""
    return charlm_mlp("charlm_mlp", SGD)


def mlp_with_adam() -> Task:
    """By Adam."""
    return charlm_mlp("charlm_mlp_adam", ADAM)


# The next characters of a sequence, by a small transformer, Adam.


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


def charlm_transformer() -> Task:
    """One block of width 32 with four heads, context 32, GELU, norms without weights."""
    training, held_out = load()

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
