"""A whole transaction again, when Postgres asks for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

T = TypeVar("T")

DEADLOCK, SERIALIZATION_FAILURE = "40P01", "40001"
MAX_ATTEMPTS = 4


async def commit_with_retry(
    sessions: async_sessionmaker[AsyncSession],
    work: Callable[[AsyncSession], Awaitable[T]],
    *,
    timeout_seconds: float | None = None,
) -> T:
    """What `work` returns, after COMMIT; a deadlock or serialization failure starts it again, three times at most.

    Args:
        sessions: Where sessions come from.
        work: What to do in the transaction.
        timeout_seconds: When to give up on a Postgres that is frozen or cut off, whose own time-outs then do not fire.

    Raises:
        DBAPIError: Any other error of the database, and the fourth of these.
        TimeoutError: After that time; whether the transaction was committed is not known.
    """
    async with asyncio.timeout(timeout_seconds):
        return await _commit_again(sessions, work)


async def _commit_again(sessions: async_sessionmaker[AsyncSession], work: Callable[[AsyncSession], Awaitable[T]]) -> T:
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
