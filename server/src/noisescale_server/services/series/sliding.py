"""Sums over a sliding window that never subtract, one point after the other: for layers, which have few points each.

|G|² falls by orders of magnitude during training, and its square twice as many: taking old sums out of a running total
would leave rounding errors larger than the new ones. Two stacks need no subtraction: each item is added at most twice.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from noisescale_core.estimators.uncertainty import MIN_BLOCKS, WINDOWS_BEFORE
from noisescale_core.estimators.windows import WindowSums
from noisescale_server.analysis.series.sliding_sums import MIN_BLOCKS_BEFORE
from noisescale_server.storage.series.series import Sums

NOTHING: Sums = (0,) * 10

EMPTY = math.inf
"""The oldest key of an empty queue: later than any."""


def plus(a: Sums, b: Sums) -> Sums:
    """Both together."""
    # spelled out, as this is most of the work of a page of layers: `map(add, a, b)` takes 2.4 times as long
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 = a
    b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 = b
    return (a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6, a7 + b7, a8 + b8, a9 + b9)


class WindowAtPoint(NamedTuple):
    """The window that ends at a point.

    Attributes:
        sums: Over its blocks.
        before: Over the four windows' length before it, or 32 blocks if these are more, as far as there are any.
        is_widened: It had to reach further back for its 8 blocks.
    """

    sums: Sums
    before: WindowSums
    is_widened: bool


class SlidingSums:
    """A queue of (key, sums) that knows its total.

    Attributes:
        num_blocks: Blocks in the queue.
        oldest_key: Of the old end; `EMPTY` where there is none.
    """

    def __init__(self, items: Iterable[tuple[int, Sums]] = ()) -> None:
        self._newer = list(items)
        self._newer_total = NOTHING
        self._older: list[tuple[int, Sums, Sums]] = []
        self.num_blocks = sum(sums[0] for _, sums in self._newer)
        self.oldest_key: float = self._newer[0][0] if self._newer else EMPTY
        self._turn()

    def push(self, key: int, sums: Sums) -> None:
        """Add at the new end."""
        if self.oldest_key is EMPTY:
            self.oldest_key = key
        self._newer.append((key, sums))
        self._newer_total = plus(self._newer_total, sums)
        self.num_blocks += sums[0]

    def total(self) -> Sums:
        """The sums of all in the queue."""
        return plus(self._older[-1][2], self._newer_total) if self._older else self._newer_total

    def pop(self, *, num_kept: float) -> tuple[int, Sums] | None:
        """Take the oldest away, which must be there; None if fewer than `num_kept` blocks would be left."""
        if not self._older:
            self._turn()
        key, sums, _ = self._older[-1]
        if self.num_blocks - sums[0] < num_kept:
            return None
        self._older.pop()
        self.num_blocks -= sums[0]
        self.oldest_key = self._older[-1][0] if self._older else self._newer[0][0] if self._newer else EMPTY
        return key, sums

    def _turn(self) -> None:
        """Make the newer stack the older one, each item with the sum of all that came after it."""
        total = NOTHING
        for key, sums in reversed(self._newer):
            total = plus(total, sums)
            self._older.append((key, sums, total))
        self._newer = []
        self._newer_total = NOTHING


class SlidingWindow:
    """The items of a window, and those of the four windows' length before it."""

    def __init__(self, earlier: Sequence[tuple[int, Sums]], *, start: int, num_before: int) -> None:
        """The window before the first point.

        Args:
            earlier: (key, sums) of what comes before that point.
            start: The first key of the first point's window.
            num_before: By how many keys the windows before reach further back than the window.
        """
        split = bisect_left(earlier, start, key=itemgetter(0))
        num_blocks = sum(sums[0] for _, sums in earlier[split:])
        while split and num_blocks < MIN_BLOCKS:
            split -= 1
            num_blocks += earlier[split][1][0]
        self._num_before = num_before
        self._before = SlidingSums(earlier[:split])
        self._window = SlidingSums(earlier[split:])

    def push(self, key: int, sums: Sums) -> None:
        """Add at the window's new end."""
        self._window.push(key, sums)

    def start_at(self, key: int) -> WindowAtPoint:
        """The window from `key` on; it starts earlier if it needs 8 blocks."""
        before = self._move(key)
        return WindowAtPoint(self._window.total(), before, is_widened=self._window.oldest_key < key)

    def _move(self, key: int) -> WindowSums:
        """What is before the window after all older than `key` has left it that need not stay."""
        window, before = self._window, self._before
        while window.oldest_key < key and (item := window.pop(num_kept=MIN_BLOCKS)):
            before.push(*item)
        first = min(key, window.oldest_key) - self._num_before
        while before.oldest_key < first and before.pop(num_kept=MIN_BLOCKS_BEFORE):
            pass
        return window_sums(before.total())


def window_sums(sums: Sums) -> WindowSums:
    """The same as the estimators take them; a number of blocks is whole already."""
    return WindowSums._make(sums)


def over_points(
    earlier: Sequence[tuple[int, Sums]], points: Iterable[tuple[int, Sums]], *, num_window_points: int
) -> Iterator[WindowAtPoint]:
    """The window that ends at each of the points; a window is a number of points, some of them `earlier` ones.

    Both hold (number, sums), in the order of numbers.
    """
    window: SlidingWindow | None = None
    for number, sums in points:
        start = number - num_window_points + 1
        window = window or SlidingWindow(earlier, start=start, num_before=WINDOWS_BEFORE * num_window_points)
        window.push(number, sums)
        yield window.start_at(start)
