"""Two figures of a whole run that every view of it shows: the latest window and the run's average.

They depend on the run's rows and not on the range that is shown, and stored rows never change. So what was computed
for the same streams is the same: reading a run again, zoomed in or not, costs nothing here until data come.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.services import latest, windows
from noisescale_server.services.live import LiveInterval
from noisescale_server.services.resolution import Range, choose, is_sparse, spacing_of
from noisescale_server.services.run_average import run_average
from noisescale_server.storage.streams import Coverage
from noisescale_server.storage.tables import Run

NUM_AVERAGED = 40
"""Windows of 5 % that the run's average is taken over, each half covered by the next."""

Key = tuple[UUID, datetime, tuple[Coverage, ...]]
"""A run, when it was created (a deleted one may come back under its id), and what its streams cover."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The figures of a whole run.

    Attributes:
        latest: Over the last 5 % of the steps.
        run_average: Mean over steps of the resolved window values.
    """

    latest: NoiseScaleEstimate
    run_average: NoiseScaleEstimate


class WholeRuns:
    """The figures of the runs read last; those not read for longest are forgotten."""

    def __init__(self, capacity: int = 1_000) -> None:
        self._capacity = capacity
        self._known: OrderedDict[Key, WholeRun] = OrderedDict()

    async def of_run(
        self, session: AsyncSession, run: Run, covered: Sequence[Coverage], live: Sequence[LiveInterval]
    ) -> WholeRun:
        """The figures of a run with steps, remembered or computed."""
        key = (run.id, run.created_at, tuple(covered))
        known = self._known.get(key)
        if known is None:
            known = WholeRun(
                latest=await latest.noise_scale(session, run.id, covered),
                run_average=await _run_average(session, run.id, covered, live),
            )
            self._known[key] = known
        self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return known


async def _run_average(
    session: AsyncSession, run_id: UUID, covered: Sequence[Coverage], live: Sequence[LiveInterval]
) -> NoiseScaleEstimate:
    """The average up to where the newest stream stands, at one resolution whatever range is shown."""
    first, last = live[0].low, latest.newest(covered).last_step
    whole = Range(first, last, first, last)
    window = -(-whole.num_steps // latest.LATEST_SHARE)
    how = choose(whole, window=window, max_points=NUM_AVERAGED, spacing=spacing_of(covered))
    found = await windows.read(session, run_id, live, whole, how, is_sparse=is_sparse(covered))
    return run_average(found.points.num_updates, found.estimates)
