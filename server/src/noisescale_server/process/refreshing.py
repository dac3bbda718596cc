"""What a server does by itself while it runs: once a second it refreshes stale windows, and judges runs anew."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.services.ingest import stale_windows
from noisescale_server.services.recommendation import decisions
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

SECONDS_BETWEEN_ROUNDS = 1.0
SECONDS_FOR_WINDOWS = 0.2
"""Of a round, a fifth of a core at most."""

SECONDS_FOR_DECISIONS = 0.2
"""Likewise, some ten runs."""

LATE_SECONDS = 0.02
"""A round that begins so much later than it should finds a process that others wait for: batches and pages."""

MOST_LEFT_OUT = 15
"""Rounds in a row that leave all as it is: lists lag by so much, a run's page always shows the newest."""

SECONDS_WHILE_MANY_WAIT = 0.1
"""Runs that somebody writes to stay in the next round: it must not be asked for without end."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_fresh(sessions: async_sessionmaker[AsyncSession], whole_runs: WholeRuns) -> AsyncIterator[None]:
    """For the block, refresh windows and decisions every second; what is under way at its end is rolled back.

    Args:
        sessions: For the refreshes.
        whole_runs: What readers have asked for.
    """
    task = asyncio.create_task(_refresh_for_ever(sessions, whole_runs))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _refresh_for_ever(sessions: async_sessionmaker[AsyncSession], whole_runs: WholeRuns) -> None:
    turns = Turns()
    late = 0.0
    while True:
        seconds = SECONDS_BETWEEN_ROUNDS
        try:
            if turns.has_time(late):
                if await _refresh_some(sessions) == stale_windows.AT_ONCE:
                    seconds = SECONDS_WHILE_MANY_WAIT
                await _decide_some(sessions, whole_runs)
        except DATABASE_ERRORS as error:
            # requests say what is wrong with the database; a round that failed leaves the runs marked
            log.debug("stale runs wait for the next round: %s", error)
        asleep_since = time.monotonic()
        await asyncio.sleep(seconds)
        late = time.monotonic() - asleep_since - seconds


class Turns:
    """Which rounds have time: not those that begin late, but one of sixteen all the same."""

    def __init__(self) -> None:
        self._num_left_out = 0

    def has_time(self, late_seconds: float) -> bool:
        """Whether this round has time.

        Args:
            late_seconds: That it began after its time.
        """
        if late_seconds < LATE_SECONDS or self._num_left_out >= MOST_LEFT_OUT:
            self._num_left_out = 0
            return True
        self._num_left_out += 1
        return False


async def _refresh_some(sessions: async_sessionmaker[AsyncSession]) -> int:
    """How many runs were found, of which as many are refreshed as the round has time for."""
    async with sessions() as session:
        stale = await stale_windows.of_a_round(session)
    until = time.monotonic() + SECONDS_FOR_WINDOWS
    for run_id in stale:
        if time.monotonic() >= until:
            break
        await _alone(sessions, stale_windows.refresh, run_id)
    return len(stale)


async def _decide_some(sessions: async_sessionmaker[AsyncSession], whole_runs: WholeRuns) -> None:
    """Judge runs as long as the round has time for it: batches and pages come first."""
    async with sessions() as session:
        stale = await decisions.of_a_round(session)
    until = time.monotonic() + SECONDS_FOR_DECISIONS
    for run_id in stale:
        if time.monotonic() >= until:
            return
        await _alone(sessions, partial(decisions.refresh, whole_runs=whole_runs), run_id)


async def _alone(
    sessions: async_sessionmaker[AsyncSession], refresh: Callable[[AsyncSession, UUID], Awaitable[None]], run_id: UUID
) -> None:
    """Refresh a run in a transaction of its own; one that cannot be computed must not leave all others stale, unseen.

    Raises:
        DATABASE_ERRORS: Where the database does not answer.
    """
    try:
        async with sessions.begin() as session:
            await refresh(session, run_id)
    except DATABASE_ERRORS:
        raise
    except Exception:
        log.exception("what run %s shows of its newest records cannot be computed", run_id)
