"""Whether larger batches end worse in a sweep that is stored."""

import asyncio
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.large_batch_quality import Quality, qualities
from noisescale_server.services import sweep_curves, sweeps
from noisescale_server.services.sweeps import Goal
from noisescale_server.storage.sweeps import SweepRow


async def of_sweep(session: AsyncSession, sweep_id: UUID, *, level: float) -> tuple[SweepRow, tuple[Quality, ...]]:
    """The sweep and its batch sizes compared under the three budgets; no comparison for fewer than two.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    view = await sweeps.get(session, sweep_id)
    curves = await sweep_curves.of_sweep(session, view.row.sweep, view.runs)
    goal: Goal = "max" if view.row.sweep.goal == "max" else "min"
    settings = sweep_curves.settings(view.runs, curves, goal)
    # off the event loop, as the fits are
    return view.row, await asyncio.to_thread(qualities, settings, level=level)
