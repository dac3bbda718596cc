"""B_crit of a sweep: steps to each target at the best learning rate of each batch size, and the fit to them."""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.sweeps.batch_sweep.target_answer import TargetAnswer, target_answer
from noisescale_server.analysis.sweeps.plan import SweepPlan, plan
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.services.sweeps.measured import most_telling
from noisescale_server.storage import sweeps as sweep_table
from noisescale_server.storage import sweeps as sweep_version
from noisescale_server.storage.platform.tables import Sweep
from noisescale_server.storage.sweeps import SweepRow

KEPT = 256

_kept: LRUCache[Hashable, tuple[TargetAnswer, ...]] = LRUCache(KEPT)


@dataclass(frozen=True, slots=True)
class SweptTargets:
    """A sweep and what it says about each target; no targets where none is named and its runs did not improve."""

    row: SweepRow
    targets: tuple[TargetAnswer, ...]


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, targets: Sequence[float], level: float, with_bootstrap: bool = False
) -> SweptTargets:
    """The fits of a sweep for the targets asked for, by default its own, and on request their check.

    A sweep that names none, as one that made itself, has a ladder of targets that all of its runs reached.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    row = await sweeps.row(session, sweep_id)
    wanted = tuple(targets) or tuple(row.sweep.targets)
    # before the data: what is newer than its version is only computed once more
    version = await sweep_version.version_of(session, sweep_id)
    return await _found(session, row, version, wanted, level=level, with_bootstrap=with_bootstrap)


async def of_sweeps(session: AsyncSession, sweep_ids: Sequence[UUID], *, level: float) -> list[SweptTargets]:
    """The fit of each sweep that exists at its hardest target; of a ladder the one that its κ is of.

    Branches, and sweeps whose runs reached nothing, are left out.
    """
    rows = [row for row in await sweep_table.get_rows(session, sweep_ids) if row.sweep.kind == "sweep"]
    versions = await sweep_version.versions_of(session, [row.sweep.id for row in rows])
    found = [
        await _found(session, row, versions[row.sweep.id], _hardest(row.sweep), level=level, with_bootstrap=False)
        for row in rows
    ]
    return [
        SweptTargets(one.row, (told,)) for one in found if (told := most_telling(reversed(one.targets))) is not None
    ]


def _hardest(sweep: Sweep) -> tuple[float, ...]:
    """Of the targets that the sweep names."""
    if not sweep.targets:
        return ()
    return (max(sweep.targets) if sweep.goal == "max" else min(sweep.targets),)


async def _found(
    session: AsyncSession, row: SweepRow, version: str, wanted: tuple[float, ...], *, level: float, with_bootstrap: bool
) -> SweptTargets:
    """As it was kept for this version of the data, or computed."""
    key = (row.sweep.id, version, wanted, level, with_bootstrap)
    found = _kept.get(key)
    if found is None:
        settings = await sweep_curves.settings_of_sweep(session, row.sweep)
        # off the event loop: fits of many targets take a second of arithmetic
        found = await asyncio.to_thread(_answers, settings, wanted, level=level, with_bootstrap=with_bootstrap)
        _kept[key] = found
    return SweptTargets(row, found)


def _answers(
    settings: Sequence[Setting], wanted: tuple[float, ...], *, level: float, with_bootstrap: bool
) -> tuple[TargetAnswer, ...]:
    targets = wanted or sweep_curves.ladder(settings)
    return tuple(target_answer(settings, one, level=level, with_bootstrap=with_bootstrap) for one in targets)


# What to run next in a sweep that is stored.


async def plan_of_sweep(
    session: AsyncSession, sweep_id: UUID, *, target: float | None, wanted_ratio: float, level: float
) -> tuple[SweepRow, SweepPlan]:
    """The sweep and its plan for a target, by default the hardest of its own, or that all of its runs reached.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: When neither the sweep nor the request names a target, and the runs did not improve.
    """
    targets = [] if target is None else [target]
    found = await of_sweep(session, sweep_id, targets=targets, level=level)
    if not found.targets:
        raise refuse("target", "is required: the sweep names none, and its runs did not improve")
    hardest = (min if found.row.sweep.goal == "min" else max)(found.targets, key=lambda one: one.target)
    return found.row, plan(hardest, wanted_ratio=wanted_ratio)
