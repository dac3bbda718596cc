"""Engine and session factory for one Postgres."""

from collections.abc import Callable
from typing import Final

from asyncpg import Connection, Record
from sqlalchemy import URL, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from noisescale_server.storage.platform.driver import plan_as_ever, read

SECONDS_AFTER_ITS_OWN_TIMEOUT: Final = 2.0
"""What Postgres has not answered so long after it should have given a statement up, it will not answer: it is frozen,
or cut off."""


def async_url(url: str) -> URL:
    """The same address with the asyncpg driver, whichever `postgres` scheme it came with."""
    return make_url(url).set(drivername="postgresql+asyncpg")


def create_engine(
    url: str,
    *,
    pool_size: int = 10,
    max_overflow: int = 0,
    pool_wait_seconds: float = 3.0,
    statement_timeout_seconds: float = 5.0,
) -> AsyncEngine:
    """An engine of at most `pool_size + max_overflow` connections.

    What waits longer for a connection or runs longer than these limits is refused: one slow query must not hold
    every worker. A Postgres that says nothing at all, so that its own time-out does not fire, is given up 2 s later,
    and with it every connection that was open to it.
    """
    server_settings = {
        "statement_timeout": str(round(1000 * statement_timeout_seconds)),
        # jit costs 100 ms on the first aggregate and gains nothing on queries of a few thousand rows
        "jit": "off",
        "timezone": "UTC",
        # of Citus, and nothing to one Postgres: hiding shards makes the driver's look at a type take a second
        "citus.override_table_visibility": "off",
    }
    engine = create_async_engine(
        async_url(url),
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=pool_wait_seconds,
        # the connection used last has its statements prepared and planned; taking turns would keep all of them cold
        pool_use_lifo=True,
        connect_args={
            "server_settings": server_settings,
            "timeout": pool_wait_seconds,
            # what is prepared stays so, however long it is, as what SQLAlchemy prepares does: by itself the driver
            # forgets it after five minutes
            "max_cached_statement_lifetime": 0,
            "max_cacheable_statement_size": 0,
            "command_timeout": statement_timeout_seconds + SECONDS_AFTER_ITS_OWN_TIMEOUT,
        },
    )
    event.listen(engine.sync_engine, "handle_error", _give_up_silent_connections)
    event.listen(engine.sync_engine, "reset", plan_as_ever)
    return engine


def _give_up_silent_connections(context: ExceptionContext) -> None:
    # else the roll-back would wait as long again on the same connection, and the next request on another one
    if isinstance(context.original_exception, TimeoutError):
        context.is_disconnect = True


# Whether this Postgres keeps what it has committed when it, or its machine, dies.

SETTINGS: Final = ("fsync", "full_page_writes", "synchronous_commit")
"""Off, any of them lets Postgres answer COMMIT and forget it in a crash (PostgreSQL manual, section "Reliability")."""

_SHOW = "SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in SETTINGS)


async def switched_off(session: AsyncSession) -> list[str]:
    """The settings that are off, as this session has them."""
    return _off(await read(session, _SHOW))


def look_at_every_connection(engine: AsyncEngine, refuse: Callable[[list[str]], None]) -> None:
    """Hand each new connection's settings that are off to `refuse`, which raises or lets it pass.

    Every connection, not the first: behind the same address another Postgres may answer tomorrow.
    """

    def look(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        found: list[Record] = connection.run_async(_show)
        refuse(_off(found))

    event.listen(engine.sync_engine, "connect", look)


async def _show(driver: Connection) -> list[Record]:
    return list(await driver.fetch(_SHOW))


def _off(found: list[Record]) -> list[str]:
    return [name for name, value in found[0].items() if value == "off"]
