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
from noisescale_server.storage import sweeps as sweep_table
from noisescale_server.storage.sweeps import SweepRow
from noisescale_server.storage.tables import Sweep

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
    return await _found(session, row, version, wanted, level=level, with_bootstrap=with_bootstrap)


async def of_sweeps(session: AsyncSession, sweep_ids: Sequence[UUID], *, level: float) -> list[CriticalBatch]:
    """The fit of each sweep that exists at its hardest target; sweeps without targets are left out."""
    rows = [row for row in await sweep_table.get_rows(session, sweep_ids) if row.sweep.targets]
    versions = await sweep_version.versions_of(session, [row.sweep.id for row in rows])
    return [
        await _found(session, row, versions[row.sweep.id], (_hardest(row.sweep),), level=level, with_bootstrap=False)
        for row in rows
    ]


def _hardest(sweep: Sweep) -> float:
    return max(sweep.targets) if sweep.goal == "max" else min(sweep.targets)


async def _found(
    session: AsyncSession, row: SweepRow, version: str, wanted: tuple[float, ...], *, level: float, with_bootstrap: bool
) -> CriticalBatch:
    """As it was kept for this version of the data, or computed."""
    key = (row.sweep.id, version, wanted, level, with_bootstrap)
    found = _kept.find(key)
    if found is None:
        settings = await sweep_curves.settings_of_sweep(session, row.sweep)
        # off the event loop: fits of many targets take a second of arithmetic
        found = await asyncio.to_thread(
            lambda: tuple(target_answer(settings, one, level=level, with_bootstrap=with_bootstrap) for one in wanted)
        )
        _kept.keep(key, found)
    return CriticalBatch(row, found)
