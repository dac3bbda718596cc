"""A few points of each of many runs, for the small pictures in a list: kept until a run logs more."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import State
from noisescale_server.services.series import evidence, windows
from noisescale_server.services.series.events import Event, events_of
from noisescale_server.services.series.live import LiveSeries, cut
from noisescale_server.services.series.resolution import choose, range_of, spacing_of
from noisescale_server.services.series.series import default_window
from noisescale_server.storage import comparison
from noisescale_server.storage.comparison import MeasuredRun
from noisescale_server.storage.runs.streams import SIMPLE

KEPT = 5_000
"""Runs, of 28 points each where nobody asks for more."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The noise scale of a run along its steps, in examples; None where it is not resolved.

    Attributes:
        step: Last step of each point.
        value: Of the noise scale over the window that ends there.
        low: Lower end of its interval, or its lower bound.
        high: Upper end; None where there is none.
        global_batch: Mean batch over the point's own steps.
        state: Of the estimate.
        wall_time: Of the point's last step, in seconds since 1970; None where none was sent.
        events: Changes of batch and learning rate, and resumptions.
    """

    step: tuple[int, ...]
    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    global_batch: tuple[float | None, ...]
    state: tuple[str, ...]
    wall_time: tuple[float | None, ...]
    events: tuple[Event, ...]


_kept: LRUCache[Hashable, Sparkline] = LRUCache(KEPT)


async def of_runs(session: AsyncSession, run_ids: Sequence[UUID], *, max_points: int) -> dict[UUID, Sparkline]:
    """By id, for the runs that have steps."""
    measured = await comparison.measured_runs(session, run_ids)
    return {run_id: await _of_run(session, measured[run_id], max_points) for run_id in run_ids if run_id in measured}


async def _of_run(session: AsyncSession, run: MeasuredRun, max_points: int) -> Sparkline:
    # rows never change: what the streams cover is the version of the data
    key = (run.run_id, run.created_at, run.coverage, max_points)
    found = _kept.get(key) or await _read(session, run, max_points)
    _kept[key] = found
    return found


async def _read(session: AsyncSession, run: MeasuredRun, max_points: int) -> Sparkline:
    live = LiveSeries.of(run.run_id, SIMPLE, run.coverage)
    whole = range_of(live.intervals, None, None)
    assert whole is not None, "measured runs have steps"
    window = default_window(run_steps=whole.num_steps, shown_steps=whole.num_steps)
    how = choose(
        whole,
        window=window,
        max_points=max_points,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, whole.high),
    )
    has_signal = await evidence.has_signal(session, live, whole.high)
    found = await windows.read(session, live, whole, how, has_signal=has_signal)
    points = found.points
    shown = [one if n else None for one, n in zip(found.estimates, points.num_updates, strict=True)]
    return Sparkline(
        step=tuple(points.step_last),
        value=tuple(one.value if one else None for one in shown),
        low=tuple(one.low if one else None for one in shown),
        high=tuple(one.high if one else None for one in shown),
        global_batch=tuple(
            total / count if count else None
            for total, count in zip(points.sum_global_batch, points.num_global_batch, strict=True)
        ),
        state=tuple(one.state if one else State.UNRESOLVED for one in shown),
        wall_time=tuple(points.wall_time_last),
        events=tuple(
            # branches come and go without a step: what is kept by the steps cannot know of them
            events_of(points, cut(live.intervals, found.low, whole.high), run_low=whole.run_low, branch_steps=())
        ),
    )
