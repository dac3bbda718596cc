"""The noise scale of one layer along a run, in the shape of the whole model's series."""

from bisect import bisect_left
from dataclasses import replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators import signal
from noisescale_core.estimators.uncertainty import MIN_BLOCKS, WINDOWS_BEFORE
from noisescale_server.analysis.series.estimates import Estimates
from noisescale_server.analysis.series.sliding_sums import MIN_BLOCKS_BEFORE
from noisescale_server.services.platform.errors import LayerNotFound, RunNotFound
from noisescale_server.services.series.average import run_average
from noisescale_server.services.series.layers import bucket_level, estimates_of, evidence_of
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, Resolution, block, points_of, range_of
from noisescale_server.services.series.series import Series, default_window, empty
from noisescale_server.services.series.whole_run import NUM_AVERAGED
from noisescale_server.services.series.windows import Windows
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series import group_series
from noisescale_server.storage.series.group_series import LayerPoints
from noisescale_server.storage.series.pyramid import TOP_LEVEL
from noisescale_server.storage.series.series import ONE_POINT, PointColumns

NUM_WINDOWS_BACK = 1 + WINDOWS_BEFORE
"""A window, and those before it that its own is judged by."""

NUM_BLOCKS_BACK = MIN_BLOCKS + MIN_BLOCKS_BEFORE
"""Records that these reach back for where steps are few."""

BEFORE_ALL = -1
"""Number of the point that stands for everything before: it leaves a window first."""


async def of_layer(
    session: AsyncSession,
    run_id: UUID,
    name: str,
    *,
    low: int | None,
    high: int | None,
    max_points: int,
    window: int | None,
) -> Series:
    """The layer's series of a range, of kind simple; blocks are records; loss, batch and learning rate are null.

    Raises:
        RunNotFound: When no run has this id.
        LayerNotFound: When no record of the run names this layer.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id))
    whole = range_of(live.intervals, None, live.newest_step) if live.covered else None
    if whole is None:
        raise LayerNotFound(run_id, name)
    overview = await _read(session, name, live, whole, _resolution(live, whole, whole.num_steps // 20, NUM_AVERAGED))
    wanted = range_of(live.intervals, low, high)
    if wanted is None:
        return empty(run, SIMPLE, low, high)
    how = _resolution(
        live, wanted, window or default_window(run_steps=whole.num_steps, shown_steps=wanted.num_steps), max_points
    )
    shown = await _read(session, name, live, wanted, how)
    return Series(
        run=run,
        kind=SIMPLE,
        low=shown.low,
        high=wanted.high,
        how=how,
        is_widened=shown.is_widened,
        points=shown.points,
        estimates=shown.estimates,
        latest=overview.estimates[-1],
        run_average=run_average(overview.points.num_updates, overview.estimates),
        events=[],
    )


def _resolution(live: LiveSeries, wanted: Range, window: int, max_points: int) -> Resolution:
    finest = live.finest_level_of_groups(0, wanted.high)
    if finest:
        max_points = min(max_points, max(1, wanted.num_steps // block(finest)))
    level = max(finest, bucket_level(-(-wanted.num_steps // max_points)))
    steps_per_point = max(block(finest), points_of(wanted, max_points=max_points, steps_per_block=block(level)))
    return Resolution(level, block(level), steps_per_point, max(window, steps_per_point), window < steps_per_point)


async def _read(session: AsyncSession, name: str, live: LiveSeries, wanted: Range, how: Resolution) -> Windows:
    """The layer's points, from far enough back for the windows of the first ones; what lies before is one point."""
    first = wanted.low // how.steps_per_point
    layer = await _from_near(session, name, live, wanted, how) or await _from_start(session, name, live, wanted, how)
    if layer is None:
        raise LayerNotFound(live.run_id, name)
    begin = bisect_left(layer.points.point, first)
    has_signal = signal.has_signal([evidence_of(layer)])
    estimates = estimates_of(layer, num_window_points=how.num_window_points, has_signal=has_signal)
    low = first * how.steps_per_point
    return Windows(low, layer.points.since(begin), Estimates.of(estimates[begin:]), is_widened=how.is_widened)


async def _from_near(
    session: AsyncSession, name: str, live: LiveSeries, wanted: Range, how: Resolution
) -> LayerPoints | None:
    """None where the five windows before the range do not hold the records that its first windows may reach back to."""
    size = how.steps_per_point
    reach = (wanted.low // size - NUM_WINDOWS_BACK * how.num_window_points) * size
    if reach <= wanted.run_low:
        return None
    near = await _points(session, name, live, (reach, wanted.high), level=how.level, steps_per_point=size)
    if near is None or _blocks_before(near, wanted.low // size) < NUM_BLOCKS_BACK:
        return None
    ends = (wanted.run_low, reach - 1)
    far = await _points(session, name, live, ends, level=TOP_LEVEL, steps_per_point=ONE_POINT)
    return joined(replace(far, points=replace(far.points, point=(BEFORE_ALL,))), near) if far else near


async def _from_start(
    session: AsyncSession, name: str, live: LiveSeries, wanted: Range, how: Resolution
) -> LayerPoints | None:
    ends = (wanted.run_low, wanted.high)
    return await _points(session, name, live, ends, level=how.level, steps_per_point=how.steps_per_point)


async def _points(
    session: AsyncSession, name: str, live: LiveSeries, ends: tuple[int, int], *, level: int, steps_per_point: int
) -> LayerPoints | None:
    chosen = live.group_pieces(*ends, level)
    found = await group_series.points(session, live.run_id, chosen, steps_per_point=steps_per_point, names=[name])
    return found[0] if found else None


def _blocks_before(layer: LayerPoints, point: int) -> int:
    return sum(layer.points.num_blocks[: bisect_left(layer.points.point, point)])


def joined(earlier: LayerPoints, later: LayerPoints) -> LayerPoints:
    """Both in a row."""
    columns = ([*getattr(earlier.points, name), *getattr(later.points, name)] for name in PointColumns.__slots__)
    return LayerPoints(later.name, PointColumns(*columns), [*earlier.moments, *later.moments])
