"""A whole transaction again, when Postgres asks for it; and batches that take turns at its connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from asyncpg.exceptions import PostgresError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.services.platform.errors import DatabaseUnreachable
from noisescale_server.storage.platform.driver import sqlstate_of

T = TypeVar("T")

CONNECTIONS_FOR_READERS = 2
"""Of those that a process keeps open."""

DEADLOCK, SERIALIZATION_FAILURE = "40P01", "40001"
MAX_ATTEMPTS = 4


async def commit_with_retry(
    sessions: async_sessionmaker[AsyncSession], work: Callable[[AsyncSession], Awaitable[T]]
) -> T:
    """What `work` returns, after COMMIT; a deadlock or serialization failure starts it again, three times at most.

    Raises:
        DBAPIError: Any other error of the database, and the fourth of these; as the driver has it where the statement
            went past SQLAlchemy (`storage.platform.driver`).
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await _commit(sessions, work)
        except (DBAPIError, PostgresError) as error:
            if sqlstate_of(error) not in {DEADLOCK, SERIALIZATION_FAILURE}:
                raise
    return await _commit(sessions, work)


async def _commit(sessions: async_sessionmaker[AsyncSession], work: Callable[[AsyncSession], Awaitable[T]]) -> T:
    async with sessions.begin() as session:
        return await work(session)


class BatchTurns:
    """How many batches of a process are at the database at once: no more than it keeps connections for.

    A burst of batches would open others, each of which has to learn types and plan statements first. That takes
    Postgres longer than all of the batches, so that more of them wait and more connections are opened, for a second.

    Args:
        pool_size: Connections that are kept open.
        wait_seconds: How long a batch waits for its turn.

    Attributes:
        at_once: So many batches.
    """

    def __init__(self, pool_size: int, wait_seconds: float) -> None:
        self.at_once = max(1, pool_size - CONNECTIONS_FOR_READERS)
        self._turns = asyncio.Semaphore(self.at_once)
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """A turn for the block.

        Raises:
            DatabaseUnreachable: Where none comes in time.
        """
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._turns.acquire()
        except TimeoutError:
            raise DatabaseUnreachable("the batches before this one wait for the database") from None
        try:
            yield
        finally:
            self._turns.release()
