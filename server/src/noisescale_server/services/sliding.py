"""Sums over a sliding window that never subtract.

|G|² falls by orders of magnitude during training, and its square twice as many: taking old sums out of a running total
would leave rounding errors larger than the new ones. Two stacks need no subtraction: each item is added at most twice.
"""

from collections.abc import Iterable, Iterator
from operator import add

from noisescale.estimators.uncertainty import MIN_BLOCKS

Sums = tuple[float, ...]
"""m, Σn, ΣX, ΣY, ΣX², ΣY², ΣXY, ΣnX, ΣnY, Σn², in the order of `WindowSums`."""

NOTHING: Sums = (0,) * 10


def plus(a: Sums, b: Sums) -> Sums:
    """Both together."""
    return tuple(map(add, a, b))


def of_block(num_updates: float, trace_cov: float, grad_sq_norm: float) -> Sums:
    """The sums of one block of n updates; nothing if it holds no estimate."""
    n, x, y = num_updates, trace_cov, grad_sq_norm
    return (1, n, x, y, x * x, y * y, x * y, n * x, n * y, n * n) if n else NOTHING


class SlidingSums:
    """A queue of (key, sums) that knows its total."""

    def __init__(self) -> None:
        self._num_blocks = 0.0
        self._newer: list[tuple[int, Sums]] = []
        self._newer_total = NOTHING
        self._older: list[tuple[int, Sums, Sums]] = []

    def push(self, key: int, sums: Sums) -> None:
        """Add at the new end."""
        self._newer.append((key, sums))
        self._newer_total = plus(self._newer_total, sums)
        self._num_blocks += sums[0]

    def total(self) -> Sums:
        """The sums of all in the queue."""
        return plus(self._older[-1][2], self._newer_total) if self._older else self._newer_total

    def drop_before(self, key: int, *, num_blocks_elsewhere: float = 0) -> bool:
        """Drop the oldest with smaller keys, but keep 8 blocks, counting those the caller holds elsewhere.

        True if something older than `key` had to be kept.
        """
        while self._newer or self._older:
            if not self._older:
                self._turn()
            oldest_key, sums, _ = self._older[-1]
            if oldest_key >= key:
                return False
            if self._num_blocks - sums[0] + num_blocks_elsewhere < MIN_BLOCKS:
                return True
            self._older.pop()
            self._num_blocks -= sums[0]
        return False

    def _turn(self) -> None:
        """Make the newer stack the older one, each item with the sum of all that came after it."""
        total = NOTHING
        for key, sums in reversed(self._newer):
            total = plus(total, sums)
            self._older.append((key, sums, total))
        self._newer = []
        self._newer_total = NOTHING


def over_points(points: Iterable[tuple[int, Sums]], *, num_window_points: int) -> Iterator[tuple[Sums, bool]]:
    """For each (number, sums): the sums of its window, and whether the window had to be widened to 8 blocks."""
    queue = SlidingSums()
    for number, sums in points:
        queue.push(number, sums)
        is_widened = queue.drop_before(number - num_window_points + 1)
        yield queue.total(), is_widened


def within_blocks(
    blocks: Iterable[tuple[int, Sums]],
    points: Iterable[tuple[int, float, float, float]],
    *,
    points_per_block: int,
    num_window_points: int,
) -> Iterator[tuple[Sums, bool]]:
    """As `over_points`, for points smaller than a block: the blocks of the window, the newest cut at the point.

    A window reaches back to the start of a block; it holds at least the steps asked for.

    Args:
        blocks: (number, sums) of the blocks before the first point; the last may be the first point's own, cut there.
        points: (number, n, X, Y).
        points_per_block: Points in a block.
        num_window_points: Length of the window in points.
    """
    queue = SlidingSums()
    current, n, x, y = -1, 0.0, 0.0, 0.0
    for number, sums in blocks:
        if current >= 0:
            queue.push(current, of_block(n, x, y))
        current, (n, x, y) = number, sums[1:4]
    for number, point_n, point_x, point_y in points:
        block = number // points_per_block
        if block != current:
            queue.push(current, of_block(n, x, y))
            current, n, x, y = block, 0.0, 0.0, 0.0
        n, x, y = n + point_n, x + point_x, y + point_y
        part = of_block(n, x, y)
        oldest_block = (number - num_window_points + 1) // points_per_block
        is_widened = queue.drop_before(oldest_block, num_blocks_elsewhere=part[0])
        yield plus(queue.total(), part), is_widened
