"""Whether larger batches end worse in a sweep that is stored."""

import asyncio
from collections.abc import Hashable
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.sweeps.large_batch_quality import Quality, qualities
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.storage import sweeps as sweep_version
from noisescale_server.storage.sweeps import SweepRow

KEPT = 64

_kept: LRUCache[Hashable, tuple[Quality, ...]] = LRUCache(KEPT)


async def of_sweep(session: AsyncSession, sweep_id: UUID, *, level: float) -> tuple[SweepRow, tuple[Quality, ...]]:
    """The sweep and its batch sizes compared under the three budgets; no comparison for fewer than two.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    row = await sweeps.row(session, sweep_id)
    key = (sweep_id, await sweep_version.version_of(session, sweep_id), level)
    found = _kept.get(key)
    if found is None:
        settings = await sweep_curves.settings_of_sweep(session, row.sweep)
        # off the event loop, as the fits are
        _kept[key] = found = await asyncio.to_thread(qualities, settings, level=level)
    return row, found
