"""What a server does once, after its start: it opens the connections that a burst of batches will take."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncEngine

from noisescale_server.services.ingest.rehearsal import rehearse
from noisescale_server.services.platform.errors import DatabaseNotDurable
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

SECONDS_BEFORE = 0.5
"""Whoever waits for the server to start comes first."""

SECONDS_BETWEEN = 0.05
"""A new connection takes Postgres so long: with as long a rest, it is half of a core for a second."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_warm(engine: AsyncEngine, num_connections: int) -> AsyncIterator[None]:
    """For the block, connections are opened in the background, and stay open: the pool keeps as many.

    Args:
        engine: Of the database that batches go to.
        num_connections: As many as there are batches at once.
    """
    task = asyncio.create_task(_warm(engine, num_connections))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _warm(engine: AsyncEngine, num_connections: int) -> None:
    await asyncio.sleep(SECONDS_BEFORE)
    try:
        async with contextlib.AsyncExitStack() as held:
            for _ in range(num_connections):
                # held while the next one opens: the pool would hand out the same one again
                connection = await held.enter_async_context(engine.connect())
                async with session_factory(engine)(bind=connection) as session:
                    await rehearse(session)
                await connection.rollback()
                await asyncio.sleep(SECONDS_BETWEEN)
    except (*DATABASE_ERRORS, DatabaseNotDurable) as error:
        # requests say what is wrong with the database, and open connections as they need them
        log.debug("connections open when they are needed: %s", error)
