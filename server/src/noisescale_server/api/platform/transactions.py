"""A whole transaction again, when Postgres asks for it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

T = TypeVar("T")

DEADLOCK, SERIALIZATION_FAILURE = "40P01", "40001"
MAX_ATTEMPTS = 4


async def commit_with_retry(
    sessions: async_sessionmaker[AsyncSession], work: Callable[[AsyncSession], Awaitable[T]]
) -> T:
    """What `work` returns, after COMMIT; a deadlock or serialization failure starts it again, three times at most.

    Raises:
        DBAPIError: Any other error of the database, and the fourth of these.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await _commit(sessions, work)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in {DEADLOCK, SERIALIZATION_FAILURE}:
                raise
    return await _commit(sessions, work)


async def _commit(sessions: async_sessionmaker[AsyncSession], work: Callable[[AsyncSession], Awaitable[T]]) -> T:
    async with sessions.begin() as session:
        return await work(session)
