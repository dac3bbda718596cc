"""Tasks on the source text of Python's standard library, a sequence of 96 characters."""

import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
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


@cache
def load() -> tuple[Tensor, Tensor]:
    """Characters to train on, and the held-out tenth that follows them.

    Top-level modules sorted by name.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    return split(b"\n".join(path.read_bytes() for path in sorted(folder.glob("*.py")))[:NUM_BYTES])


def split(text: bytes) -> tuple[Tensor, Tensor]:
    """The characters of a text, and those of its last tenth.

    Args:
        text: Bytes 32 to 126 become 0 to 94, all others 95.
    """
    values = np.frombuffer(text, dtype=np.uint8)
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
