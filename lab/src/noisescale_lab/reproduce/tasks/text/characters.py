"""The source text of Python's standard library as a sequence of 96 characters.

It differs from one Python version to the next, and figures from it differ a little with it.
"""

import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.random_stream import pick

NUM_CHARACTERS = 96
NUM_BYTES = 3_000_000
HELD_OUT_SHARE = 0.1
EVALUATION_SIZE = 2048
FIRST_PRINTABLE, LAST_PRINTABLE = 32, 126


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
