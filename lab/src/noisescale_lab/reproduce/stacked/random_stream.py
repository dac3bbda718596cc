"""Common random numbers: what a replica draws depends on its seed and on how many examples it has seen.

Replicas of one seed see the same examples in the same order at any batch size and learning rate, so that differences
between them are differences of the settings and not of luck.
"""

import math

import torch
from torch import Tensor

KEY_BITS = 62
LENGTH = 1 << 18


class RandomStream:
    """Keys of 62 random bits, a table a seed; a task turns each key into an example."""

    def __init__(self) -> None:
        self._tables: dict[int, Tensor] = {}

    def table(self, seed: int, length: int = LENGTH) -> Tensor:
        """The first keys of a seed, [length]."""
        known = self._tables.get(seed)
        if known is None or len(known) < length:
            # a run that goes on asks for a little more each time
            longer = length if known is None else max(length, min(2 * len(known), LENGTH))
            generator = torch.Generator().manual_seed(seed + 1_000_003)
            self._tables[seed] = torch.randint(0, 1 << KEY_BITS, (longer,), generator=generator)
        return self._tables[seed][:length]

    def tables(self, seeds: list[int], num_examples: int = LENGTH) -> tuple[Tensor, Tensor]:
        """The tables of different seeds below each other, [seeds, at most LENGTH], and each replica's row, [R, 1].

        Args:
            seeds: Of the replicas.
            num_examples: How many of a seed are ever drawn: short runs with many seeds need the beginnings alone.
        """
        different = sorted(set(seeds))
        rows = torch.tensor([[different.index(seed)] for seed in seeds])
        return torch.stack([self.table(seed, min(num_examples, LENGTH)) for seed in different]), rows


def keys(tables: Tensor, rows: Tensor, positions: Tensor, batch: int) -> Tensor:
    """The next keys of every replica, [R, B].

    A table that is used up starts again with its bits flipped by a pattern of its own, so nothing repeats.

    Args:
        tables: [seeds, LENGTH].
        rows: Row of each replica, [R, 1].
        positions: Examples seen so far, [R, 1].
        batch: B.
    """
    places = positions + torch.arange(batch)
    flips = (places // LENGTH) * 0x2545F4914F6CDD1D & ((1 << KEY_BITS) - 1)
    return tables[rows, places % LENGTH] ^ flips


def pick(drawn: Tensor, count: int) -> Tensor:
    """A uniform integer below `count` from the upper bits of each key."""
    return (drawn >> 31) % count


def fraction(drawn: Tensor) -> Tensor:
    """A uniform number in [0, 1) from the lower bits of each key, independent of `pick`."""
    return (drawn & 0x7FFFFFFF).double() / 0x80000000


def normals(drawn: Tensor, count: int) -> Tensor:
    """So many standard normal numbers from each key, [..., count], independent of `pick`.

    The two halves of a hash become two normal numbers by Box and Muller's transform.
    """
    hashed = _hashed(drawn, -(-count // 2))
    radius = (-2 * torch.log(fraction(hashed) + 2**-32)).sqrt()
    angle = 2 * math.pi * fraction(_shifted(hashed, 31))
    return torch.cat([radius * angle.cos(), radius * angle.sin()], -1)[..., :count].float()


def uniforms(drawn: Tensor, count: int) -> Tensor:
    """So many uniform numbers in [0, 1] from each key, [..., count], independent of `pick`."""
    hashed = _hashed(drawn, -(-count // 2))
    return torch.cat([fraction(hashed), fraction(_shifted(hashed, 31))], -1)[..., :count].float()


def _hashed(drawn: Tensor, count: int) -> Tensor:
    """So many independent keys from each, [..., count].

    Source: the finaliser of splitmix64, Steele et al. 2014, doi 10.1145/2660193.2660195.
    """
    hashed = drawn[..., None] + torch.arange(1, count + 1) * _wrapped(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashed = (hashed ^ _shifted(hashed, shift)) * _wrapped(factor)
    return hashed ^ _shifted(hashed, 31)


def _wrapped(number: int) -> int:
    """An unsigned number of 64 bits as the signed one of the same bits."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _shifted(values: Tensor, places: int) -> Tensor:
    """Bits moved to the right, zeros following: tensors have signed integers only."""
    return (values >> places) & ((1 << (64 - places)) - 1)
