"""Where rows of a stream are folded: units of 1,024 steps whose rows the pyramids alone hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from noisescale_server.storage.series.group_pyramid import LOWEST_LEVEL
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL
from noisescale_server.storage.series.series import Piece

UNIT_LEVEL: Final = LOWEST_LEVEL
"""A unit is a bucket of the pyramid of group records, which begins there, and 32 of that of measurements."""

UNIT_BITS: Final = BITS_PER_LEVEL * UNIT_LEVEL
"""Steps of a unit are 2 to this power."""

Steps = tuple[int, int]
"""First and last step, both included."""


def steps_of_units(folded: Sequence[int]) -> list[Steps]:
    """The steps of ranges of units, given as first and last in turn."""
    ranges = zip(folded[::2], folded[1::2], strict=True)
    return [(low << UNIT_BITS, ((high + 1) << UNIT_BITS) - 1) for low, high in ranges]


def rows_of(piece: Piece) -> Piece:
    """A piece of a level below `UNIT_LEVEL` as the rows it stands for; any other one as it is."""
    if piece.level == 0 or piece.level >= UNIT_LEVEL:
        return piece
    size = 1 << (BITS_PER_LEVEL * piece.level)
    return Piece(piece.stream_id, 0, piece.low * size, piece.high * size + size - 1)


def without_rows(found: Sequence[Piece], folded: Mapping[UUID, Sequence[Steps]], *, level: int) -> list[Piece]:
    """The pieces, with buckets of `level` in place of rows that are folded; no bucket twice.

    Args:
        found: Of each stream in the order of steps.
        folded: By stream, its folded steps, sorted; whole buckets of `level`.
        level: Lowest level that holds them.
    """
    if not folded:
        return list(found)
    kept: list[Piece] = []
    # of each stream: the first bucket that is not taken yet
    free: dict[UUID, int] = {}
    for piece in found:
        if piece.level or piece.stream_id not in folded:
            kept.append(piece)
            continue
        for part in _parts(piece, folded[piece.stream_id], level):
            if part.level:
                low = max(part.low, free.get(part.stream_id, 0))
                free[part.stream_id] = part.high + 1
                if low <= part.high:
                    kept.append(Piece(part.stream_id, level, low, part.high))
            else:
                kept.append(part)
    return kept


def _parts(piece: Piece, folded: Iterable[Steps], level: int) -> list[Piece]:
    """A piece of rows as rows that are there and buckets of those that are not."""
    parts: list[Piece] = []
    low, bits = piece.low, BITS_PER_LEVEL * level
    for first, last in folded:
        if last < low or first > piece.high:
            continue
        if first > low:
            parts.append(Piece(piece.stream_id, 0, low, first - 1))
        parts.append(Piece(piece.stream_id, level, max(first, low) >> bits, min(last, piece.high) >> bits))
        low = last + 1
    if low <= piece.high:
        parts.append(Piece(piece.stream_id, 0, low, piece.high))
    return parts
