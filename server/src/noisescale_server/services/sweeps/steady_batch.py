"""The one batch size that a stored run trained at, read from its windows; a run's row knows its newest batch alone."""

from collections.abc import Hashable, Mapping, Sequence
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.series.steady_batch import BatchWindow, steady_batch
from noisescale_server.services.series import whole_run
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage import comparison
from noisescale_server.storage.comparison import MeasuredRun
from noisescale_server.storage.runs.streams import SIMPLE

NUM_WINDOWS = 64
"""At most, of equally many steps: what is read of ten million steps is as much as of a hundred."""

KEPT = 5_000
"""Runs whose windows are kept."""

_kept: LRUCache[Hashable, tuple[BatchWindow, ...]] = LRUCache(KEPT)


async def of_runs(
    session: AsyncSession, newest: Mapping[UUID, float], *, to_step: Mapping[UUID, int] | None = None
) -> dict[UUID, float | None]:
    """The batch of each run, in examples; None where it changed while the run trained.

    Args:
        session: Where to read.
        newest: The newest batch of each run, as its row says it.
        to_step: The last step that counts, of runs that should not be looked at to their end.
    """
    measured = await comparison.measured_runs(session, list(newest))
    found: dict[UUID, float | None] = {}
    for run_id, batch in newest.items():
        run = measured.get(run_id)
        windows = () if run is None else await _windows(session, run, (to_step or {}).get(run_id))
        found[run_id] = steady_batch(windows, batch)
    return found


async def _windows(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> Sequence[BatchWindow]:
    # stored rows never change: the same steps give the same windows
    key = (run.run_id, run.created_at, run.coverage, to_step)
    known = _kept.get(key)
    if known is None:
        _kept[key] = known = tuple(await _read(session, run, to_step))
    return known


async def _read(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> list[BatchWindow]:
    live = LiveSeries.of(run.run_id, SIMPLE, run.coverage)
    found = await whole_run.points_of(session, live, NUM_WINDOWS, to_step=to_step)
    columns = zip(found.global_batch_max, found.sum_global_batch, found.num_global_batch, strict=True)
    return [BatchWindow(largest, total / count) for largest, total, count in columns if largest is not None and count]
