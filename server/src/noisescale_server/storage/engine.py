"""Engine and session factory for one Postgres."""

from sqlalchemy import URL, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

STATEMENT_TIMEOUT_MS = 5_000
POOL_WAIT_SECONDS = 3


def async_url(url: str) -> URL:
    """The same address with the asyncpg driver, whichever `postgres` scheme it came with."""
    return make_url(url).set(drivername="postgresql+asyncpg")


def create_engine(url: str, *, pool_size: int = 10) -> AsyncEngine:
    """An engine of at most `pool_size` connections.

    A request waits 3 s for a connection and a statement may run 5 s; what takes longer is refused, so that a slow
    query cannot hold every worker.
    """
    return create_async_engine(
        async_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        connect_args={
            # jit costs 100 ms on the first aggregate and gains nothing on queries of a few thousand rows
            "server_settings": {"statement_timeout": str(STATEMENT_TIMEOUT_MS), "jit": "off", "timezone": "UTC"},
        },
    )


def session_factory(engine: AsyncEngine) -> async_sessionmaker[AsyncSession]:
    """Sessions that keep loaded values after commit: an answer is shaped when the transaction is over."""
    return async_sessionmaker(engine, expire_on_commit=False)
