"""The noise scale of one layer along a run, in the shape of the whole model's series."""

from bisect import bisect_left
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators import signal
from noisescale_server.services.errors import LayerNotFound, RunNotFound
from noisescale_server.services.layers import estimates_of, evidence_of
from noisescale_server.services.live import LiveSeries
from noisescale_server.services.resolution import Range, Resolution, points_of, range_of
from noisescale_server.services.run_average import run_average
from noisescale_server.services.series import Series, default_window, empty
from noisescale_server.services.whole_run import NUM_AVERAGED
from noisescale_server.services.windows import Windows
from noisescale_server.storage import group_series, runs, streams
from noisescale_server.storage.streams import SIMPLE


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
    overview = await _read(session, name, live, whole, _resolution(whole, whole.num_steps // 20, NUM_AVERAGED))
    wanted = range_of(live.intervals, low, high)
    if wanted is None:
        return empty(run, SIMPLE, low, high)
    how = _resolution(
        wanted, window or default_window(run_steps=whole.num_steps, shown_steps=wanted.num_steps), max_points
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


def _resolution(wanted: Range, window: int, max_points: int) -> Resolution:
    steps_per_point = points_of(wanted, max_points=max_points)
    return Resolution(0, 1, steps_per_point, max(window, steps_per_point), is_widened=window < steps_per_point)


async def _read(session: AsyncSession, name: str, live: LiveSeries, wanted: Range, how: Resolution) -> Windows:
    """The layer's points; read from the run's start, because records are few and windows reach back to 8 of them."""
    chosen = live.pieces(wanted.run_low, wanted.high, 0)
    found = await group_series.points(session, live.run_id, chosen, steps_per_point=how.steps_per_point, name=name)
    if not found:
        raise LayerNotFound(live.run_id, name)
    [layer] = found
    first = bisect_left(layer.points.point, wanted.low // how.steps_per_point)
    has_signal = signal.has_signal(**evidence_of(layer)._asdict())
    estimates = estimates_of(layer, num_window_points=how.num_window_points, has_signal=has_signal)
    low = wanted.low - wanted.low % how.steps_per_point
    return Windows(low, layer.points.since(first), estimates[first:], is_widened=how.is_widened)
