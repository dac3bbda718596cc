"""B_crit of a sweep: steps to each target at the best learning rate of each batch size, and the fit to them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.batch_sweep.target_answer import TargetAnswer, target_answer
from noisescale_server.services import sweep_curves, sweeps
from noisescale_server.services.errors import refuse
from noisescale_server.services.kept_answers import KeptAnswers
from noisescale_server.storage import sweep_version
from noisescale_server.storage.sweeps import SweepRow

KEPT = 256

_kept: KeptAnswers[tuple[TargetAnswer, ...]] = KeptAnswers(KEPT)


@dataclass(frozen=True, slots=True)
class CriticalBatch:
    """A sweep and what it says about each target."""

    row: SweepRow
    targets: tuple[TargetAnswer, ...]


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, targets: Sequence[float], level: float, with_bootstrap: bool = False
) -> CriticalBatch:
    """The fits of a sweep for the targets asked for, by default its own, and on request their check.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: When neither the sweep nor the request names a target.
    """
    row = await sweeps.row(session, sweep_id)
    wanted = tuple(targets) or tuple(row.sweep.targets)
    if not wanted:
        raise refuse("target", "is required: the sweep was created without targets")
    # before the data: what is newer than its version is only computed once more
    version = await sweep_version.version_of(session, sweep_id)
    key = (sweep_id, version, wanted, level, with_bootstrap)
    found = _kept.find(key)
    if found is None:
        settings = await sweep_curves.settings_of_sweep(session, row.sweep)
        # off the event loop: fits of many targets take a second of arithmetic
        found = await asyncio.to_thread(
            lambda: tuple(target_answer(settings, one, level=level, with_bootstrap=with_bootstrap) for one in wanted)
        )
        _kept.keep(key, found)
    return CriticalBatch(row, found)
