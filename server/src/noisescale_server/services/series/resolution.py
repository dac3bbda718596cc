"""Which level of the pyramid, how many blocks a point, how many steps a window: chosen so that a read stays small.

Steps are counted from 0 in blocks of 32**level, so the same step always falls in the same block and point.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from noisescale_core.estimators.uncertainty import MIN_BLOCKS
from noisescale_server.services.series.live import LiveInterval
from noisescale_server.storage.runs.streams import Coverage
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, TOP_LEVEL

MAX_BLOCKS_READ = 30_000
"""Blocks that one read may add up: about 20 ms of Postgres."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a range of steps is shown.

    Attributes:
        level: Level of the blocks whose spread gives the intervals.
        steps_per_block: 32**level.
        steps_per_point: A multiple of steps_per_block, or a power of two below it.
        window_steps: Steps over which each point is estimated.
        is_widened: The window is longer than asked for.
    """

    level: int
    steps_per_block: int
    steps_per_point: int
    window_steps: int
    is_widened: bool

    @property
    def point_level(self) -> int:
        """Level that points are read from."""
        if self.steps_per_point >= self.steps_per_block:
            return self.level
        return (self.steps_per_point.bit_length() - 1) // BITS_PER_LEVEL

    @property
    def buckets_per_point(self) -> int:
        """Buckets of `point_level` in a point."""
        return self.steps_per_point >> (BITS_PER_LEVEL * self.point_level)

    @property
    def num_window_points(self) -> int:
        """Points in a window."""
        return -(-self.window_steps // self.steps_per_point)


@dataclass(frozen=True, slots=True)
class Range:
    """Steps `low` … `high`, both included, of a run that covers `run_low` … `run_high`."""

    run_low: int
    run_high: int
    low: int
    high: int

    @property
    def num_steps(self) -> int:
        """Steps in the range."""
        return self.high - self.low + 1


def range_of(live: Sequence[LiveInterval], low: int | None, high: int | None) -> Range | None:
    """The steps asked for, as far as the run has them; None where it has none."""
    if not live:
        return None
    run_low, run_high = live[0].low, live[-1].high
    first = run_low if low is None else max(low, run_low)
    last = run_high if high is None else min(high, run_high)
    return Range(run_low, run_high, first, last) if first <= last else None


def choose(wanted: Range, *, window: int, max_points: int, spacing: int, finest: int = 0) -> Resolution:
    """At most `max_points` points with windows of at least `window` steps and 8 blocks.

    Args:
        wanted: The steps to show.
        window: Steps asked for.
        max_points: Most points in the answer.
        spacing: Steps between rows that hold estimates: closer blocks would be empty.
        finest: The lowest level that there is: 1 where rows are folded (`LiveSeries.finest_level`).
    """
    if finest:
        spacing = max(spacing, block(finest))
        max_points = min(max_points, max(1, wanted.num_steps // block(finest)))
    steps_per_point = -(-wanted.num_steps // max_points)
    window_steps = max(window, MIN_BLOCKS * spacing, steps_per_point)
    # Blocks must also fit where the run has just begun: 8 of them in an eighth of what there is.
    reach = max(wanted.low - wanted.run_low + 1, (wanted.high - wanted.run_low + 1) // MIN_BLOCKS)
    level = max(finest, level_with_blocks(min(window_steps, reach)))
    while level < TOP_LEVEL and (wanted.num_steps + window_steps) // max(block(level), spacing) > MAX_BLOCKS_READ:
        level += 1
        window_steps = max(window_steps, MIN_BLOCKS * block(level))
    return Resolution(
        level=level,
        steps_per_block=block(level),
        steps_per_point=max(block(finest), points_of(wanted, max_points=max_points, steps_per_block=block(level))),
        window_steps=window_steps,
        is_widened=window_steps > window,
    )


def block(level: int) -> int:
    """Steps of a block of this level."""
    return 1 << (BITS_PER_LEVEL * level)


def level_of(num_steps: int) -> int:
    """The highest level whose buckets make up so many steps, a power of two."""
    return min(TOP_LEVEL, (num_steps.bit_length() - 1) // BITS_PER_LEVEL)


def level_with_blocks(num_steps: int) -> int:
    """The highest level of which 8 blocks fit into `num_steps`; 0 if none does."""
    fitting = [level for level in range(TOP_LEVEL + 1) if MIN_BLOCKS * block(level) <= num_steps]
    return max(fitting, default=0)


def points_of(wanted: Range, *, max_points: int, steps_per_block: int = 1) -> int:
    """Steps per point: whole blocks, or where these are too long a power of two; at most `max_points` points."""
    at_least = -(-wanted.num_steps // max_points)
    steps = 1 << (at_least - 1).bit_length()
    while steps < steps_per_block and _num_points(wanted, steps) > max_points:
        steps *= 2
    if steps < steps_per_block:
        return steps
    steps = _whole_blocks(at_least, steps_per_block)
    if _num_points(wanted, steps) <= max_points:
        return steps
    # Points start at multiples of their length, so the range touches one more than its length has room for.
    fewer = max_points - 1
    return _whole_blocks(-(-wanted.num_steps // fewer) if fewer else wanted.high + 1, steps_per_block)


def _whole_blocks(steps: int, steps_per_block: int) -> int:
    return -(-steps // steps_per_block) * steps_per_block


def _num_points(wanted: Range, steps: int) -> int:
    return wanted.high // steps - wanted.low // steps + 1


def spacing_of(streams: Iterable[Coverage]) -> int:
    """Steps between neighbouring rows with estimates, of the stream that logs most rarely; 1 if no estimate is there.

    Streams with fewer than 8 estimates say nothing about the spacing of the others and are left out.
    """
    spans = [
        (stream.last_step - stream.first_step + 1) // stream.num_estimates
        for stream in streams
        if stream.num_estimates >= MIN_BLOCKS
    ]
    return max([1, *spans])


def is_sparse(streams: Iterable[Coverage]) -> bool:
    """Whether some steps have no row with an estimate, so that windows may have to reach back for 8 of them."""
    return any(stream.num_estimates < stream.last_step - stream.first_step + 1 for stream in streams)
