"""What the newest row of a run that knows its path says of it."""

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.learning_rate import RuleFamily, family_of
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block, level_of
from noisescale_server.storage import learning_rate as path_sums
from noisescale_server.storage.learning_rate import LastOfPath
from noisescale_server.storage.platform.tables import Run

FEW = 200
"""Buckets that are asked: of millions of rows, none of which may know a path, each would have to be read."""


async def last_of_path(session: AsyncSession, live: LiveSeries, high: int) -> LastOfPath | None:
    """The start of the path and the momentum as the run stood at a step; None where no row up to there knows a path.

    Args:
        session: Where to read.
        live: Of kind simple, with at least one step.
        high: The step.
    """
    low = live.first_step
    steps = max((high - low + 1) // FEW, block(live.finest_level(low, high)))
    return await path_sums.last_of_path(session, live.run_id, live.pieces(low, high, level_of(steps)))


async def momentum_of(session: AsyncSession, run: Run, live: LiveSeries, high: int) -> float | None:
    """The momentum of a run by SGD as it stood at a step; None where no row knows one, and of every other optimizer.

    Args:
        session: Where to read.
        run: As stored.
        live: Its series of kind simple, with at least one step.
        high: The step.
    """
    if family_of(run.optimizer) is not RuleFamily.SGD:
        return None
    path = await last_of_path(session, live, high)
    return None if path is None else path.momentum
