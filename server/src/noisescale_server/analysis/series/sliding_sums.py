"""The sums of many sliding windows at once, and of the blocks before each, without a subtraction.

|G|² falls by orders of magnitude during training, and its square twice as many: the difference of two running totals
would keep rounding errors larger than what is left. A sum over any range is put together from sums over powers of two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisescale_core.estimators.uncertainty import MIN_BLOCKS, WINDOWS_BEFORE
from noisescale_core.estimators.windows import WindowSums

Sums = NDArray[np.float64]
"""Shape [items, 10], the order of `WindowSums`."""
Numbers = NDArray[np.int64]

NUM_SUMS = len(WindowSums._fields)

MIN_BLOCKS_BEFORE = WINDOWS_BEFORE * MIN_BLOCKS
"""Where a window has to reach back for its 8 blocks, the four before it reach back for theirs."""


class SlidingWindows(NamedTuple):
    """The window that ends at each point.

    Attributes:
        sums: Over its blocks, shape [points, 10].
        before: Over the four windows' length before it, or 32 blocks if these are more, as far as there are any.
        is_widened: It had to reach further back for its 8 blocks.
    """

    sums: Sums
    before: Sums
    is_widened: NDArray[np.bool_]


class _Asked(NamedTuple):
    """What the windows are.

    Attributes:
        starts: The first number of each.
        ends: Of the items, how many are not after it.
        parts: The newest part of each, which is no item yet.
        num_before: By how many numbers the windows before reach further back than the window.
    """

    starts: Numbers
    ends: NDArray[np.intp]
    parts: Sums
    num_before: int


def over_points(
    earlier: Sequence[tuple[int, Sequence[float]]], numbers: Sequence[int], sums: Sums, *, num_window_points: int
) -> SlidingWindows:
    """The window that ends at each of the points; a window is a number of points, some of them `earlier` ones.

    Args:
        earlier: (number, ten sums) of what comes before the first point.
        numbers: Of the points, rising.
        sums: Of each point.
        num_window_points: Length of a window.
    """
    own = np.array(numbers, np.int64)
    before = np.array([ten for _, ten in earlier], float).reshape(-1, NUM_SUMS)
    asked = _Asked(
        starts=own - (num_window_points - 1),
        ends=len(before) + 1 + np.arange(len(own)),
        parts=np.zeros_like(sums),
        num_before=WINDOWS_BEFORE * num_window_points,
    )
    return _windows(np.concatenate(([number for number, _ in earlier], own)), np.concatenate((before, sums)), asked)


def within_blocks(
    earlier: Sequence[Sequence[float]],
    numbers: Sequence[int],
    terms: Sums,
    *,
    points_per_block: int,
    num_window_points: int,
) -> SlidingWindows:
    """As `over_points`, for points smaller than a block: the blocks of the window, the newest cut at the point.

    A window reaches back to the start of a block; it holds at least the steps asked for.

    Args:
        earlier: (number, n, X, Y, …) of the blocks before the first point; the last may be the first point's own, cut
            there.
        numbers: Of the points, rising.
        terms: n, X and Y of each point, shape [points, 3].
        points_per_block: Points in a block.
        num_window_points: Length of the window in points.
    """
    own = np.array(numbers, np.int64)
    if not len(own):
        return SlidingWindows(np.zeros((0, NUM_SUMS)), np.zeros((0, NUM_SUMS)), np.zeros(0, bool))
    whole = np.array([block[:4] for block in earlier], float).reshape(-1, 4)
    last = whole[-1:]
    blocks = np.concatenate((last[:, 0].astype(np.int64), own // points_per_block))
    so_far, group, totals = _running_within(blocks, np.concatenate((last[:, 1:], terms)))
    numbers_of_groups = blocks[np.flatnonzero(np.diff(group, prepend=-1))]
    is_item = totals[:, 0] != 0
    items = np.concatenate((of_blocks(whole[:-1, 1:]), of_blocks(totals[is_item])))
    num_older = max(len(whole) - 1, 0)
    num_done = np.concatenate(([0], np.cumsum(is_item)))
    points = slice(len(last), None)
    asked = _Asked(
        starts=(own - num_window_points + 1) // points_per_block,
        ends=num_older + num_done[group[points]],
        parts=of_blocks(so_far[points]),
        num_before=-(-WINDOWS_BEFORE * num_window_points // points_per_block),
    )
    return _windows(np.concatenate((whole[:-1, 0].astype(np.int64), numbers_of_groups[is_item])), items, asked)


def of_blocks(terms: Sums) -> Sums:
    """The ten sums of each block of n updates; nothing where it holds no estimate.

    Args:
        terms: n, X and Y of each, shape [blocks, 3].
    """
    n, x, y = terms.T
    found = np.stack((np.ones_like(n), n, x, y, x * x, y * y, x * y, n * x, n * y, n * n), axis=1)
    return np.where((n != 0)[:, None], found, 0.0)


def _running_within(groups: Numbers, terms: Sums) -> tuple[Sums, NDArray[np.intp], Sums]:
    """The sums of a group up to each of its rows, the place of its group, and the sums of whole groups.

    Args:
        groups: Number of each row's group, rising.
        terms: Shape [rows, 3].
    """
    is_first = np.diff(groups, prepend=-1) != 0
    group = np.cumsum(is_first) - 1
    place = np.arange(len(groups)) - np.flatnonzero(is_first)[group]
    padded = np.zeros((group[-1] + 1, place.max() + 1, terms.shape[1]))
    padded[group, place] = terms
    running = padded.cumsum(axis=1)
    return running[group, place], group, running[:, -1]


def _windows(numbers: Numbers, items: Sums, asked: _Asked) -> SlidingWindows:
    """The windows of some items, each back to its start, or further for its 8 blocks."""
    num_blocks = np.concatenate(([0.0], np.cumsum(items[:, 0])))
    enough = num_blocks[asked.ends] + asked.parts[:, 0] - MIN_BLOCKS
    first = np.minimum(np.searchsorted(numbers, asked.starts), _last_with(num_blocks, enough))
    # behind the last item nothing is older
    oldest = np.concatenate((numbers, [np.iinfo(np.int64).max]))[np.where(first < asked.ends, first, len(numbers))]
    start_before = np.minimum(asked.starts, oldest) - asked.num_before
    first_before = np.minimum(
        np.searchsorted(numbers, start_before), _last_with(num_blocks, num_blocks[first] - MIN_BLOCKS_BEFORE)
    )
    return SlidingWindows(
        sums=_over_ranges(items, first, asked.ends) + asked.parts,
        before=_over_ranges(items, first_before, first),
        is_widened=oldest < asked.starts,
    )


def _last_with(num_blocks: Sums, enough: Sums) -> NDArray[np.intp]:
    """The last item that a range may begin with: without it there would be too few blocks.

    Args:
        num_blocks: Before each item, and in all.
        enough: So many of them may be left out.
    """
    return np.maximum(np.searchsorted(num_blocks, enough, side="right") - 1, 0)


def _over_ranges(items: Sums, first: NDArray[np.intp], end: NDArray[np.intp]) -> Sums:
    """Σ items[first:end] for each pair."""
    found = np.zeros((len(first), items.shape[1]))
    left, length = first.copy(), end - first
    longest = int(length.max(initial=0))
    size, sums = 1, items
    while size <= longest:
        taken = np.flatnonzero(length & size)
        found[taken] += sums[left[taken]]
        left[taken] += size
        sums = sums[:-size] + sums[size:]
        size *= 2
    return found
