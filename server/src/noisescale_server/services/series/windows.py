"""Reads a range as points and estimates the noise scale over the window that ends at each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import WINDOWS_BEFORE
from noisescale_server.analysis.series import sliding_sums
from noisescale_server.analysis.series.estimates import Estimates, estimates_of
from noisescale_server.analysis.series.sliding_sums import SlidingWindows, Sums
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, Resolution, is_sparse
from noisescale_server.storage.series import series
from noisescale_server.storage.series.series import SUM_COLUMNS, PointColumns

ReadPoints = Callable[..., Awaitable[PointColumns]]

REACH = 1 + WINDOWS_BEFORE
"""Windows that are looked back: the point's own and the four before it."""

REACH_WHERE_SPARSE = 4 + 2 * WINDOWS_BEFORE
"""Rows are not evenly spaced where a duty cycle chooses them: look this many windows back for all their blocks."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Points and the estimate over the window that ends at each.

    Attributes:
        low: First step of the first point, a multiple of the steps per point.
        points: What the steps of each point hold.
        estimates: One a point.
        is_widened: A window had to reach further back for its 8 blocks.
    """

    low: int
    points: PointColumns
    estimates: Estimates
    is_widened: bool


async def read(
    session: AsyncSession,
    live: LiveSeries,
    wanted: Range,
    how: Resolution,
    *,
    has_signal: bool,
    read_points: ReadPoints = series.points,
) -> Windows:
    """The points from the one that holds `wanted.low` up to `wanted.high`, and their estimates.

    Args:
        session: Where to read.
        live: The kind of noise scale, as views show it.
        wanted: The range to show.
        how: Level, points and window.
        has_signal: The run up to `wanted.high` has shown a gradient.
        read_points: `series.points`, or `series.spent` for one who needs no more.
    """
    low = wanted.low - wanted.low % how.steps_per_point
    steps_per_item = max(how.steps_per_block, how.steps_per_point)
    # a window may hold up to one item more than the steps asked for
    num_steps = (REACH_WHERE_SPARSE if is_sparse(live.covered) else REACH) * (how.window_steps + steps_per_item)
    start = max(0, low - num_steps)
    start -= start % steps_per_item
    read_windows = _whole_blocks if how.steps_per_point >= how.steps_per_block else _parts_of_blocks
    points, found = await read_windows(session, live, (start, low, wanted.high), how, read_points)
    estimates = estimates_of(found.sums, found.before, has_signal=has_signal)
    return Windows(low, points, estimates, bool(found.is_widened.any()))


async def _whole_blocks(
    session: AsyncSession, live: LiveSeries, steps: tuple[int, int, int], how: Resolution, read_points: ReadPoints
) -> tuple[PointColumns, SlidingWindows]:
    """Points of one or more blocks: a window is a number of points."""
    start, low, high = steps
    earlier = await series.sums(
        session,
        live.run_id,
        live.pieces(start, low - 1, how.level),
        level=how.level,
        blocks_per_point=how.buckets_per_point,
        kind=live.kind,
    )
    points = await _read(session, live, low, high, how, read_points)
    own = columns_of(points, SUM_COLUMNS)
    return points, sliding_sums.over_points(earlier, points.point, own, num_window_points=how.num_window_points)


async def _parts_of_blocks(
    session: AsyncSession, live: LiveSeries, steps: tuple[int, int, int], how: Resolution, read_points: ReadPoints
) -> tuple[PointColumns, SlidingWindows]:
    """Points smaller than a block: a window is a number of blocks, the newest of which ends at the point."""
    start, low, high = steps
    earlier = live.pieces(start, low - 1, how.level)
    blocks = await series.blocks(session, live.run_id, earlier, level=how.level, kind=live.kind)
    points = await _read(session, live, low, high, how, read_points)
    found = sliding_sums.within_blocks(
        blocks,
        points.point,
        columns_of(points, ("num_updates", "trace_cov", "grad_sq_norm")),
        points_per_block=how.steps_per_block // how.steps_per_point,
        num_window_points=how.num_window_points,
    )
    return points, found


async def _read(
    session: AsyncSession, live: LiveSeries, low: int, high: int, how: Resolution, read_points: ReadPoints
) -> PointColumns:
    level = how.point_level
    return await read_points(
        session,
        live.run_id,
        live.pieces(low, high, level),
        level=level,
        blocks_per_point=how.buckets_per_point,
        kind=live.kind,
    )


def columns_of(points: PointColumns, names: Sequence[str]) -> Sums:
    """Some columns of the points, side by side."""
    return np.array([getattr(points, name) for name in names], float).T
