"""What to run next in a sweep that is stored."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.sweeps.plan import SweepPlan, plan
from noisescale_server.services.sweeps import critical_batch
from noisescale_server.storage.sweeps import SweepRow


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, target: float | None, wanted_ratio: float, level: float
) -> tuple[SweepRow, SweepPlan]:
    """The sweep and its plan for a target, by default the hardest of its own.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: When neither the sweep nor the request names a target.
    """
    targets = [] if target is None else [target]
    found = await critical_batch.of_sweep(session, sweep_id, targets=targets, level=level)
    hardest = (min if found.row.sweep.goal == "min" else max)(found.targets, key=lambda one: one.target)
    return found.row, plan(hardest, wanted_ratio=wanted_ratio)
