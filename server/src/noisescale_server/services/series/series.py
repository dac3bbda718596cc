"""The noise scale along a run: points with their estimates, the latest window, the run's average, and events."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import MIN_BLOCKS, NOTHING_MEASURED, NoiseScaleEstimate
from noisescale_server.analysis.series.estimates import Estimates
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.services.series import windows
from noisescale_server.services.series.events import Event, events_of
from noisescale_server.services.series.live import LiveSeries, cut
from noisescale_server.services.series.resolution import Resolution, block, choose, range_of, spacing_of
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import sweeps
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE, Kind
from noisescale_server.storage.series.pyramid import TOP_LEVEL
from noisescale_server.storage.series.series import PointColumns

SHORT_RUN_WINDOW_SHARE = 20
LONG_RUN_WINDOW_SHARE = 100
LONG_ENOUGH_STEPS = 256
"""A window that nobody chose is 5 % of a short run, as the latest window is, 256 steps, and 1 % of a long one.

Wider windows read low while |G|² falls; narrower ones of a few steps flicker between resolved and not."""

SMOOTH_LINE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Series:
    """What the chart of a run shows.

    Attributes:
        run: The run.
        kind: The kind of noise scale.
        low: First step of the first point; None while the run has no steps.
        high: Last step asked for.
        how: Level, points and window.
        is_widened: Windows are longer than asked for.
        points: What the steps of each point hold.
        estimates: One a point, over its window.
        latest: Over the last 5 % of the steps.
        run_average: Mean over steps of the resolved window values.
        events: Changes along the points; of kind simple alone.
        latest_step: The last step that is in `latest`; None where none is.
    """

    run: Run
    kind: Kind
    low: int | None
    high: int | None
    how: Resolution
    is_widened: bool
    points: PointColumns
    estimates: Estimates
    latest: NoiseScaleEstimate
    run_average: NoiseScaleEstimate
    events: list[Event]
    latest_step: int | None = None


def default_window(*, run_steps: int, shown_steps: int) -> int:
    """Steps of the window that nobody chose.

    Where a level still draws a smooth line its 8 blocks, 4 % of what is shown at most, are the
    window if that is longer: the level below would cost up to 32 times as much.
    """
    longest, shortest = -(-run_steps // SHORT_RUN_WINDOW_SHARE), -(-run_steps // LONG_RUN_WINDOW_SHARE)
    window = max(shortest, min(longest, LONG_ENOUGH_STEPS))
    eight_blocks = [
        MIN_BLOCKS * block(level) for level in range(TOP_LEVEL + 1) if shown_steps >= SMOOTH_LINE_POINTS * block(level)
    ]
    return max([window, *eight_blocks])


async def of_run(
    session: AsyncSession,
    whole_runs: WholeRuns,
    run_id: UUID,
    *,
    low: int | None,
    high: int | None,
    max_points: int,
    window: int | None,
    kind: Kind = SIMPLE,
) -> Series:
    """The series of a range, by default of the whole run and of kind simple.

    Raises:
        RunNotFound: When no run has this id.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    live = LiveSeries.of(run_id, kind, await streams.coverage_of_run(session, run_id, kind))
    wanted = range_of(live.intervals, low, high)
    if wanted is None:
        return empty(run, kind, low, high)
    chosen = window or default_window(run_steps=wanted.run_high - wanted.run_low + 1, shown_steps=wanted.num_steps)
    how = choose(
        wanted,
        window=chosen,
        max_points=max_points,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, wanted.high),
    )
    # the whole run first: what it knows of a signal need not be asked again
    whole = await whole_runs.of_run(session, run, live)
    has_signal = await whole_runs.has_signal(session, run, live, wanted.high)
    shown = await windows.read(session, live, wanted, how, has_signal=has_signal)
    branch_steps = await sweeps.branch_steps(session, run_id) if kind == SIMPLE else []
    shown_intervals = cut(live.intervals, shown.low, wanted.high)
    return Series(
        run=run,
        kind=kind,
        low=shown.low,
        high=wanted.high,
        how=how,
        is_widened=how.is_widened or shown.is_widened,
        points=shown.points,
        estimates=shown.estimates,
        latest=whole.latest,
        run_average=whole.run_average,
        events=events_of(shown.points, shown_intervals, run_low=wanted.run_low, branch_steps=branch_steps)
        if kind == SIMPLE
        else [],
        latest_step=whole.latest_step,
    )


def empty(run: Run, kind: Kind, low: int | None, high: int | None) -> Series:
    """The series of steps that the run does not have."""
    nothing = NOTHING_MEASURED
    how = Resolution(level=0, steps_per_block=1, steps_per_point=1, window_steps=8, is_widened=False)
    return Series(run, kind, low, high, how, False, PointColumns(), Estimates.of(()), nothing, nothing, [])
