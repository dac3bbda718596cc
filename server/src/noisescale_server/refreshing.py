"""What a server does by itself while it runs: it refreshes stale windows, once a second."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.api.errors import DATABASE_ERRORS
from noisescale_server.services import stale_windows

SECONDS_BETWEEN_ROUNDS = 1.0

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
        has_more = False
        try:
            has_more = await stale_windows.refresh_all(sessions)
        except DATABASE_ERRORS as error:
            # requests say what is wrong with the database; a round that failed leaves the runs marked
            log.debug("stale windows wait for the next round: %s", error)
        await asyncio.sleep(0 if has_more else SECONDS_BETWEEN_ROUNDS)
