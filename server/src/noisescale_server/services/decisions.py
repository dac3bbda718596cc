"""What to do with a run's batch, for its row in lists: judged in turn by every server, a few runs a second.

To judge a run takes its whole history, some 20 ms of which most is arithmetic, so no batch waits for it and a run that
is read by itself is judged on the spot.
"""

import asyncio
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.evidence import Measured
from noisescale_core.advice.parts import Decision
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.looks import look_of, steps_of
from noisescale_server.services import evidence, known_kappa, run_history
from noisescale_server.services.live import LiveSeries
from noisescale_server.services.resolution import range_of
from noisescale_server.services.run_history import NOTHING_SPENT
from noisescale_server.storage import run_decisions, runs, streams
from noisescale_server.storage.streams import SIMPLE
from noisescale_server.storage.tables import Run

AT_ONCE = 100
"""Runs of one round; those that are left come in the next."""


async def of_a_round(session: AsyncSession) -> list[UUID]:
    """Runs to judge now, those in use first."""
    return await run_decisions.stale(session, AT_ONCE)


async def refresh(session: AsyncSession, run_id: UUID) -> None:
    """Keep what to do with the batch of a run, by all that is stored of it; unless another server does."""
    run = await runs.get(session, run_id) if await run_decisions.claim(session, run_id) else None
    if run is not None:
        found, due_step = await _judge(session, run)
        await run_decisions.store(session, run, found, due_step)


async def show_newest(session: AsyncSession, run: Run) -> None:
    """Let a run that was read show the decision of now, in memory alone: the database may be a replica."""
    if run.decision_is_stale and run.first_step is not None:
        found, _ = await _judge(session, run)
        if run in session:
            session.expunge(run)
        for name, value in run_decisions.columns_of(found).items():
            setattr(run, name, value)


async def _judge(session: AsyncSession, run: Run) -> tuple[Decision, int | None]:
    """The decision, and the step from which on there is more to judge by."""
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    wanted = range_of(live.intervals, None, live.newest_step) if live.covered else None
    past = NOTHING_SPENT
    if wanted is not None:
        has_signal = await evidence.has_signal(session, live, wanted.high)
        past = await run_history.read(session, live, wanted, has_signal=has_signal)
    kappa = await known_kappa.of_run(session, run)
    # milliseconds of arithmetic, for which no request should wait
    found = await asyncio.to_thread(decide, run_history.so_far(run, past), Measured(kappa))
    return found, None if wanted is None else steps_of(look_of(wanted.high))[1] + 1
