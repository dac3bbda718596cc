"""What to do with a run's batch, for its row in lists: judged in turn by every server, a few runs a second.

To judge a run takes its whole history, some 20 ms of which most is arithmetic, so no batch waits for it and a run that
is read by itself is judged on the spot.
"""

import asyncio
from dataclasses import replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.decision import may_wait_for_the_rate
from noisescale_core.advice.defaults import filled
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.parts.parts import Decision
from noisescale_core.advice.question import NOTHING_ASKED
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.looks import look_of, steps_of
from noisescale_server.services import defaults, learning_rate
from noisescale_server.services.recommendation import known_kappa
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import recommendation as run_decisions
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE

AT_ONCE = 100
"""Runs of one round; those that are left come in the next."""


async def of_a_round(session: AsyncSession) -> list[UUID]:
    """Runs to judge now, those in use first."""
    return await run_decisions.stale(session, AT_ONCE)


async def refresh(session: AsyncSession, run_id: UUID, whole_runs: WholeRuns) -> None:
    """Keep what to do with the batch of a run, by all that is stored of it; unless another server does.

    Args:
        session: Where to read and write.
        run_id: Of the run.
        whole_runs: What readers have asked for; runs that nobody reads push none of it out.
    """
    run = await runs.get(session, run_id) if await run_decisions.claim(session, run_id) else None
    if run is not None:
        found, due_step = await _judge(session, whole_runs, run, is_read=False)
        await run_decisions.store(session, run, found, due_step)


async def show_newest(session: AsyncSession, whole_runs: WholeRuns, run: Run) -> None:
    """Let a run that was read show the decision of now, in memory alone: the database may be a replica."""
    if run.decision_is_stale and run.first_step is not None:
        found, _ = await _judge(session, whole_runs, run, is_read=True)
        if run in session:
            session.expunge(run)
        for name, value in run_decisions.columns_of(found).items():
            setattr(run, name, value)


async def _judge(
    session: AsyncSession, whole_runs: WholeRuns, run: Run, *, is_read: bool
) -> tuple[Decision, int | None]:
    """The decision, and the step from which on there is more to judge by."""
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    past = await whole_runs.history_of(session, run, live, is_kept=is_read)
    kappa = await known_kappa.of_run(session, run)
    said = await defaults.of_id(session, run.project_id)
    asked = filled(NOTHING_ASKED, said, own_price=run.usd_per_device_hour)
    # milliseconds of arithmetic, for which no request should wait
    so_far = run_history.so_far(run, past)
    found = await asyncio.to_thread(decide, so_far, Measured(kappa), asked)
    if may_wait_for_the_rate(found.decision) and (off := await learning_rate.far_off_at(session, run)) is not None:
        found = await asyncio.to_thread(decide, replace(so_far, rate_off=off), Measured(kappa), asked)
    return found, steps_of(look_of(live.newest_step))[1] + 1 if live.covered else None
