"""What every view of a run shows of all of it: the latest window, the average, its history, whether it has a gradient.

They depend on the run's rows and not on the range that is shown, and stored rows never change. So what was computed
for the same streams is the same: reading a run again, zoomed in or not, costs nothing here until data come.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.answer import Recommendation
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.services.series import evidence, latest, windows
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series.average import run_average
from noisescale_server.services.series.history import History
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.newest_path import momentum_of
from noisescale_server.services.series.resolution import Range, choose, range_of, spacing_of
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE, Coverage
from noisescale_server.storage.series import series
from noisescale_server.storage.series.series import PointColumns

NUM_AVERAGED = 40
"""Windows of 5 % that the run's average is taken over, each half covered by the next."""

NUM_HISTORIES = 256
"""Histories that are kept, of 100 stretches each: 10 MB."""

Key = tuple[UUID, datetime, tuple[Coverage, ...]]
"""A run, when it was created (a deleted one may come back under its id), and what its streams of a kind cover."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The figures of a whole run.

    Attributes:
        latest: Over the last 5 % of the steps.
        run_average: Mean over steps of the resolved window values.
        latest_step: The last step that is in the latest window's estimate; None where none is.
        signal_step: The earliest step by which the run is known to have shown a gradient; None while it has not.
    """

    latest: NoiseScaleEstimate
    run_average: NoiseScaleEstimate
    signal_step: int | None
    latest_step: int | None = None


async def points_of(
    session: AsyncSession, live: LiveSeries, max_points: int, *, to_step: int | None = None
) -> PointColumns:
    """A run's steps from its first on, in at most so many points of equally many.

    Args:
        session: Where to read.
        live: With at least one step.
        max_points: What is read of ten million steps is as much as of a hundred.
        to_step: The last that counts; None: all.
    """
    first, newest = live.first_step, live.newest_step
    last = newest if to_step is None else min(max(to_step, first), newest)
    whole = Range(first, last, first, last)
    how = choose(
        whole,
        window=1,
        max_points=max_points,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, last),
    )
    level = how.point_level
    pieces = live.pieces(first, last, level)
    return await series.points(session, live.run_id, pieces, level=level, blocks_per_point=how.buckets_per_point)


class WholeRuns:
    """The figures of the runs read last; those not read for longest are forgotten.

    Attributes:
        recommendations: The last one of a run, in full or of a list, with a learning rate that is not far off or one
            that is, and with all that it was made from.
    """

    def __init__(self, capacity: int = 1_000) -> None:
        self._known: LRUCache[Key, WholeRun] = LRUCache(capacity)
        self._histories: LRUCache[tuple[Key, int], History] = LRUCache(NUM_HISTORIES)
        self.recommendations: LRUCache[tuple[UUID, bool, bool], tuple[object, Recommendation]] = LRUCache(NUM_HISTORIES)

    async def of_run(self, session: AsyncSession, run: Run, live: LiveSeries) -> WholeRun:
        """The figures of a run with steps, remembered or computed."""
        key = _key(run, live)
        self._known[key] = known = self._known.get(key) or await _compute(session, live)
        return known

    async def has_signal(self, session: AsyncSession, run: Run, live: LiveSeries, high: int) -> bool:
        """Whether the run up to step `high` has shown a gradient; asked of the database only where nobody knows yet.

        A signal stays one: what is known of an earlier step answers for all later ones.
        """
        known = self._known.get(_key(run, live))
        if known is None:
            return await evidence.has_signal(session, live, high)
        if known.signal_step is not None and known.signal_step <= high:
            return True
        if high == live.newest_step:
            return False
        found = await evidence.has_signal(session, live, high)
        if found:
            self._known[_key(run, live)] = replace(known, signal_step=high)
        return found

    async def history(self, session: AsyncSession, run: Run, to_step: int | None = None) -> History:
        """What the run had spent when it stood at a step, remembered or read; None: now."""
        live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
        return await self.history_of(session, run, live, to_step)

    async def history_of(
        self,
        session: AsyncSession,
        run: Run,
        live: LiveSeries,
        to_step: int | None = None,
        *,
        is_kept: bool = True,
        has_signal: bool | None = None,
    ) -> History:
        """The same where the run's series is known.

        Args:
            session: Where to read.
            run: The run.
            live: Its series of kind simple.
            to_step: Where it stood; None: now.
            is_kept: For the next that asks.
            has_signal: Whether all of it has shown a gradient, where that was read already.
        """
        stands_at = live.newest_step if to_step is None and live.covered else to_step
        wanted = range_of(live.intervals, None, stands_at)
        if wanted is None:
            return run_history.NOTHING_SPENT
        key = (_key(run, live), wanted.high)
        known = self._histories.get(key)
        if known is not None:
            return known
        known_signal = has_signal if wanted.high == live.newest_step else None

        async def is_shown() -> bool:
            return await self.has_signal(session, run, live, wanted.high) if known_signal is None else known_signal

        found = await run_history.read(session, live, wanted, has_signal=is_shown)
        found = replace(found, momentum=await momentum_of(session, run, live, wanted.high))
        if is_kept:
            self._histories[key] = found
        return found


def _key(run: Run, live: LiveSeries) -> Key:
    return run.id, run.created_at, live.covered


async def _compute(session: AsyncSession, live: LiveSeries) -> WholeRun:
    newest = await latest.window(session, live)
    return WholeRun(
        latest=newest.noise_scale,
        run_average=await _run_average(session, live, has_signal=newest.has_signal),
        signal_step=live.newest_step if newest.has_signal else None,
        latest_step=newest.step,
    )


async def _run_average(session: AsyncSession, live: LiveSeries, *, has_signal: bool) -> NoiseScaleEstimate:
    """The average up to where the newest stream stands, at one resolution whatever range is shown."""
    first, last = live.first_step, live.newest_step
    whole = Range(first, last, first, last)
    window = latest.steps_of_window(whole.num_steps, live.covered)
    how = choose(
        whole,
        window=window,
        max_points=NUM_AVERAGED,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, whole.high),
    )
    found = await windows.read(session, live, whole, how, has_signal=has_signal)
    return run_average(found.points.num_updates, found.estimates)
