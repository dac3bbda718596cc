"""B_crit of a sweep: steps to each target at the best learning rate of each batch size, and the fit to them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.batch_sweep.target_answer import TargetAnswer, target_answer
from noisescale_server.services import sweep_curves, sweeps
from noisescale_server.services.errors import refuse
from noisescale_server.services.sweeps import Goal
from noisescale_server.storage.sweeps import SweepRow


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
    view = await sweeps.get(session, sweep_id)
    wanted = list(targets) or view.row.sweep.targets
    if not wanted:
        raise refuse("target", "is required: the sweep was created without targets")
    curves = await sweep_curves.of_sweep(session, view.row.sweep, view.runs)
    goal: Goal = "max" if view.row.sweep.goal == "max" else "min"
    # off the event loop: fits of many targets take a second of arithmetic
    settings = sweep_curves.settings(view.runs, curves, goal)
    found = await asyncio.to_thread(
        lambda: tuple(target_answer(settings, one, level=level, with_bootstrap=with_bootstrap) for one in wanted)
    )
    return CriticalBatch(view.row, found)
