"""What a server does by itself while it runs: it refreshes stale windows, once a second."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.api.errors import DATABASE_ERRORS
from noisescale_server.services import stale_windows

SECONDS_BETWEEN_ROUNDS = 1.0
SECONDS_WHILE_MANY_WAIT = 0.1
"""Runs that somebody writes to stay in the next round: it must not be asked for without end."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_fresh(sessions: async_sessionmaker[AsyncSession]) -> AsyncIterator[None]:
    """For the block, refresh stale windows every second; what is under way at its end is rolled back."""
    task = asyncio.create_task(_refresh_for_ever(sessions))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _refresh_for_ever(sessions: async_sessionmaker[AsyncSession]) -> None:
    while True:
        seconds = SECONDS_BETWEEN_ROUNDS
        try:
            if await _refresh_some(sessions) == stale_windows.AT_ONCE:
                seconds = SECONDS_WHILE_MANY_WAIT
        except DATABASE_ERRORS as error:
            # requests say what is wrong with the database; a round that failed leaves the runs marked
            log.debug("stale windows wait for the next round: %s", error)
        await asyncio.sleep(seconds)


async def _refresh_some(sessions: async_sessionmaker[AsyncSession]) -> int:
    """How many runs were looked at, each in a transaction of its own."""
    async with sessions() as session:
        stale = await stale_windows.of_a_round(session)
    for run_id in stale:
        try:
            async with sessions.begin() as session:
                await stale_windows.refresh(session, run_id)
        except DATABASE_ERRORS:
            raise
        except Exception:  # one run that cannot be computed must not leave all others stale, unseen
            log.exception("the newest window of run %s cannot be computed", run_id)
    return len(stale)
