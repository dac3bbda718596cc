"""The noise scale of one layer along a run, in the shape of the whole model's series."""

from bisect import bisect_left
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services import latest
from noisescale_server.services.errors import LayerNotFound, RunNotFound
from noisescale_server.services.layers import estimates_of
from noisescale_server.services.live import LiveInterval, cut, live_intervals, pieces
from noisescale_server.services.resolution import Range, Resolution, points_of, range_of
from noisescale_server.services.run_average import run_average
from noisescale_server.services.series import Series, default_window, empty
from noisescale_server.services.whole_run import NUM_AVERAGED
from noisescale_server.services.windows import Windows
from noisescale_server.storage import group_series, runs, streams


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
    """The layer's series of a range; blocks are records, and loss, batch and learning rate are null.

    Raises:
        RunNotFound: When no run has this id.
        LayerNotFound: When no record of the run names this layer.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    covered = await streams.coverage_of_run(session, run_id)
    live = live_intervals(covered)
    whole = range_of(live, None, latest.newest(covered).last_step) if covered else None
    if whole is None:
        raise LayerNotFound(run_id, name)
    overview = await _read(session, run_id, name, live, whole, _resolution(whole, whole.num_steps // 20, NUM_AVERAGED))
    wanted = range_of(live, low, high)
    if wanted is None:
        return empty(run, low, high)
    how = _resolution(
        wanted, window or default_window(run_steps=whole.num_steps, shown_steps=wanted.num_steps), max_points
    )
    shown = await _read(session, run_id, name, live, wanted, how)
    return Series(
        run=run,
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


def _resolution(wanted: Range, window: int, max_points: int) -> Resolution:
    steps_per_point = points_of(wanted, max_points=max_points)
    return Resolution(0, 1, steps_per_point, max(window, steps_per_point), is_widened=window < steps_per_point)


async def _read(
    session: AsyncSession, run_id: UUID, name: str, live: Sequence[LiveInterval], wanted: Range, how: Resolution
) -> Windows:
    """The layer's points; read from the run's start, because records are few and windows reach back to 8 of them."""
    chosen = pieces(cut(live, wanted.run_low, wanted.high), 0)
    found = await group_series.points(session, run_id, chosen, steps_per_point=how.steps_per_point, name=name)
    if not found:
        raise LayerNotFound(run_id, name)
    [layer] = found
    first = bisect_left(layer.points.point, wanted.low // how.steps_per_point)
    estimates = estimates_of(layer, num_window_points=how.num_window_points)
    low = wanted.low - wanted.low % how.steps_per_point
    return Windows(low, layer.points.since(first), estimates[first:], is_widened=how.is_widened)
