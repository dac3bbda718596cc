"""A count-sketch of parameters: numbers whose squares add up to their squared norm, and which are linear in them.

Each element goes with a random sign into one of 1,021 buckets. So the distance between the parameters now and those at
the start of a run is known from two sketches, and nothing as large as the model has to be kept: a copy of the
parameters for the length of `optimizer.step()` could be what a device's memory has no room for.
"""

# G groups of parameters, M buckets

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from noisescale_core.estimators.path import SKETCH_SIZE

ROWS_ON_CPU, ROWS_ON_DEVICE, MOST_ROWS = 64, 4096, 8192
"""Elements of a piece, over the buckets: a piece stays in a processor's cache, and on a device launches are few."""

PIECES = 16
"""On a device, between these: a piece takes the host a quarter of a millisecond."""

BITS = 32
"""Pieces that share a word of random bits for each place."""

MOST_KEPT = 64 << 20
"""Bytes of words that are kept; they come to a bit or two an element, and beyond these are computed anew."""

AT_ONCE = 1 << 20
"""Words that are computed at once, in six times their memory."""

SIGN = -(2**31)
LOW_BITS = 0xFFFF_FFFF


class CountSketch:
    """Sketches the same parameters again and again, with the same signs.

    Args:
        groups: Parameters by group; each group has buckets of its own.
        seed: Of the signs.
    """

    def __init__(self, groups: Sequence[Sequence[Tensor]], seed: int = 0) -> None:
        self._groups = [[parameter for parameter in group if parameter.numel()] for group in groups]
        self._device = next(parameter for group in groups for parameter in group).device
        self._seed = seed
        num_elements = sum(_num_elements(parameter) for group in groups for parameter in group)
        rows = rows_of_piece(num_elements, self._device)
        self._size = SKETCH_SIZE * rows
        self._longest = min(self._size, num_elements)
        self._words: list[Tensor] = []
        # as before there was a choice, so that what was kept then is known again
        shape = "" if rows in (ROWS_ON_CPU, ROWS_ON_DEVICE) else f" {rows}"
        self.layout = f"{self._device.type} {seed}{shape} " + " ".join(
            "+".join(str(parameter.numel()) for parameter in group) for group in groups
        )

    @torch.no_grad()
    def now(self) -> Tensor:
        """The sketch of the parameters as they are, [G, M] in fp64."""
        sketch_GM = torch.zeros(len(self._groups), SKETCH_SIZE, dtype=torch.float64, device=self._device)
        signed = torch.empty(-(-self._longest // SKETCH_SIZE) * SKETCH_SIZE, dtype=torch.int32, device=self._device)
        number = 0
        for group, sketch_M in zip(self._groups, sketch_GM, strict=True):
            for piece in _pieces(group, self._size):
                words = self._words_of(number // BITS)
                sketch_M += _bucket_sums(piece, words, number % BITS, signed)
                number += 1
        return sketch_GM

    def _words_of(self, block: int) -> Tensor:
        if block < len(self._words):
            return self._words[block]
        words = random_words(self._longest, self._seed + block, self._device)
        if block == len(self._words) and (block + 1) * words.numel() * words.element_size() <= MOST_KEPT:
            self._words.append(words)
        return words


def rows_of_piece(num_elements: int, device: torch.device) -> int:
    """Elements of a piece, over the buckets.

    Args:
        num_elements: Of all parameters.
        device: Where they are.
    """
    if device.type == "cpu":
        return ROWS_ON_CPU
    return min(max(ROWS_ON_DEVICE, -(-num_elements // (PIECES * SKETCH_SIZE))), MOST_ROWS)


def _bucket_sums(piece: Tensor, words: Tensor, bit: int, signed: Tensor) -> Tensor:
    """Σ ± x of each bucket, a place's bucket being its remainder."""
    length = piece.numel()
    rows = -(-length // SKETCH_SIZE)
    flips = signed[:length]
    torch.bitwise_left_shift(words[:length], bit, out=flips)
    # a float with its highest bit changed has the other sign, exactly
    flips.bitwise_and_(SIGN).bitwise_xor_(piece.view(torch.int32))
    signed[length : rows * SKETCH_SIZE] = 0
    table = signed[: rows * SKETCH_SIZE].view(torch.float32).view(rows, SKETCH_SIZE)
    # a piece on the CPU has 64 rows, whose sum in fp32 is exact enough and takes half of the time
    return table.sum(0) if piece.device.type == "cpu" else table.sum(0, dtype=torch.float64)


def _pieces(parameters: Sequence[Tensor], size: int) -> Iterator[Tensor]:
    """The elements in fp32, at most so many at once; small parameters are put together."""
    small: list[Tensor] = []
    num_small = 0
    for parameter in parameters:
        flat = _flat(parameter)
        if flat.numel() >= size:
            yield from flat.split(size)
            continue
        if num_small + flat.numel() > size:
            yield torch.cat(small)
            small, num_small = [], 0
        small.append(flat)
        num_small += flat.numel()
    if small:
        yield torch.cat(small) if len(small) > 1 else small[0]


def _local(parameter: Tensor) -> Tensor:
    """This rank's part of a parameter."""
    to_local = getattr(parameter, "to_local", None)
    return parameter.detach() if to_local is None else to_local().detach()


def _num_elements(parameter: Tensor) -> int:
    return _local(parameter).numel() * (1 + parameter.is_complex())


def _flat(parameter: Tensor) -> Tensor:
    """This rank's part of a parameter as a vector in fp32."""
    local = _local(parameter)
    real = torch.view_as_real(local) if local.is_complex() else local
    return real.reshape(-1).to(torch.float32)


def random_words(count: int, seed: int, device: torch.device) -> Tensor:
    """Words of 32 random bits, the same on every device: a generator's would differ from one to another.

    Args:
        count: How many.
        seed: Of which sequence.
        device: Where.

    Source: the finaliser of MurmurHash3 (Appleby), of a counter.
    """
    found = torch.empty(count, dtype=torch.int32, device=device)
    for first in range(0, count, AT_ONCE):
        end = min(count, first + AT_ONCE)
        words = torch.arange(first, end, dtype=torch.int64, device=device) + seed * 0x9E37_79B1 & LOW_BITS
        words = (words ^ (words >> 16)) * 0x85EB_CA6B & LOW_BITS
        words = (words ^ (words >> 13)) * 0xC2B2_AE35 & LOW_BITS
        words = words ^ (words >> 16)
        # the same bits as a number with a sign
        found[first:end] = words - ((words >> 31) << 32)
    return found
