"""Reads a range as points and estimates the noise scale over the window that ends at each."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import WINDOWS_BEFORE, NoiseScaleEstimate, estimate
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, Resolution, is_sparse
from noisescale_server.services.series.sliding import WindowAtPoint, over_points, window_sums, within_blocks
from noisescale_server.storage.series import series
from noisescale_server.storage.series.series import PointColumns

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
    estimates: list[NoiseScaleEstimate]
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
    estimates = [estimate(window_sums(one.sums), has_signal=has_signal, before=one.before) for one in found]
    return Windows(low, points, estimates, any(one.is_widened for one in found))


async def _whole_blocks(
    session: AsyncSession, live: LiveSeries, steps: tuple[int, int, int], how: Resolution, read_points: ReadPoints
) -> tuple[PointColumns, list[WindowAtPoint]]:
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
    shown = zip(points.point, points.block_sums(), strict=True)
    return points, list(over_points(earlier, shown, num_window_points=how.num_window_points))


async def _parts_of_blocks(
    session: AsyncSession, live: LiveSeries, steps: tuple[int, int, int], how: Resolution, read_points: ReadPoints
) -> tuple[PointColumns, list[WindowAtPoint]]:
    """Points smaller than a block: a window is a number of blocks, the newest of which ends at the point."""
    start, low, high = steps
    earlier = live.pieces(start, low - 1, how.level)
    blocks = await series.blocks(session, live.run_id, earlier, level=how.level, kind=live.kind)
    points = await _read(session, live, low, high, how, read_points)
    found = within_blocks(
        blocks,
        zip(points.point, points.num_updates, points.trace_cov, points.grad_sq_norm, strict=True),
        points_per_block=how.steps_per_block // how.steps_per_point,
        num_window_points=how.num_window_points,
    )
    return points, list(found)


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
