"""Statements as Postgres takes them, past SQLAlchemy's compiler: it costs more than the small ones take to run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg.protocol.protocol as asyncpg_codecs
from asyncpg import Connection, Record
from asyncpg.exceptions import InterfaceError as DriverInterfaceError
from asyncpg.exceptions import InternalClientError as DriverConfused
from asyncpg.exceptions import InternalServerError, PostgresError
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState

ARRAYS = (list, tuple, range, set, frozenset)
"""What a parameter that is an array may be."""

# The driver asks an abstract base class of each element whether it is an array itself, in Python: a quarter of all that
# a server does with a batch of 1,000 rows.
vars(asyncpg_codecs)["IterableABC"] = ARRAYS


async def fetch(session: AsyncSession, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement with parameters $1, $2, …; prepared once a connection, in the session's transaction.

    SQLAlchemy begins the transaction with its first statement. What follows goes to the driver as it is.
    """
    connection = await session.connection()
    async with _driver_of(connection) as driver:
        if driver.is_in_transaction():  # type: ignore[no-untyped-call]
            return [tuple(row) for row in await driver.fetch(statement, *parameters)]
    found = await connection.exec_driver_sql(statement, parameters)
    return [tuple(row) for row in found] if found.returns_rows else []


async def fetch_row(session: AsyncSession, statement: str, *parameters: Any) -> tuple[Any, ...] | None:
    """The only row of a statement; None where it has none."""
    found = await fetch(session, statement, *parameters)
    return found[0] if found else None


async def read(session: AsyncSession, statement: str, *parameters: Any) -> list[Record]:
    """The rows of a statement that only reads, without SQLAlchemy's cursor: 500 rows of 28 columns cost it 3 ms.

    On the session's own connection, so it sees what the session's transaction has written.
    """
    connection = await session.connection()
    async with _driver_of(connection) as driver:
        return list(await driver.fetch(statement, *parameters))


@asynccontextmanager
async def _driver_of(connection: AsyncConnection) -> AsyncIterator[Connection]:
    known = connection.sync_connection
    # to ask for it costs a greenlet, which is needed only where there may be none
    raw = await connection.get_raw_connection() if known is None or known.invalidated else known.connection
    driver = raw.driver_connection
    assert isinstance(driver, Connection), "storage.engine opens connections with asyncpg"
    try:
        yield driver
    except Exception as error:
        # past SQLAlchemy, so past what the engine does of itself
        if isinstance(error, TimeoutError) or driver.is_closed():  # type: ignore[no-untyped-call]
            await connection.run_sync(_give_up_all, error)
        elif isinstance(error, InternalServerError):
            await connection.invalidate(error)  # what it has prepared may be of tables that have gone
        raise


def _give_up_all(connection: SyncConnection, error: Exception) -> None:
    """Of a Postgres that is silent or gone, every connection that is open to it.

    Else the roll-back would wait as long again, and so would the next request on another one. As SQLAlchemy does it of
    itself where a statement goes by it; it has no public name for the pool's part.
    """
    if not connection.invalidated:
        connection.engine.pool._invalidate(connection.connection, error, _checkin=False)
        connection.invalidate(error)


PLANNED_ONCE: Final = "planned_once"
"""Of what is known of a connection (`Connection.info`): it keeps plans until it goes back to its pool."""

_PLAN_ONCE = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
_PLAN_AS_EVER = "RESET plan_cache_mode; RESET enable_seqscan"


async def read_by_key(session: AsyncSession, statement: str, *parameters: Any) -> list[Record]:
    """As `read`, for a statement that finds its rows by their keys, whichever run and steps it is asked for.

    Outside a transaction it is planned once a connection: to plan a chart's statements, over partitions, for each
    request took Postgres longer than most of them. Without reading whole tables, so that a plan that was made for an
    empty one is as good when it is full.
    """
    connection = await session.connection()
    if PLANNED_ONCE not in connection.info and _is_outside_a_transaction(connection):
        connection.info[PLANNED_ONCE] = True
        async with _driver_of(connection) as driver:
            await driver.execute(_PLAN_ONCE)
    return await read(session, statement, *parameters)


def _is_outside_a_transaction(connection: AsyncConnection) -> bool:
    found = connection.sync_connection
    return found is not None and found.get_execution_options().get("isolation_level") == "AUTOCOMMIT"


def plan_as_ever(connection: DBAPIConnection, entry: ConnectionPoolEntry, state: PoolResetState) -> None:
    """Hand a connection back as it was taken: others may plan each of their statements for what it asks."""
    if entry.info.pop(PLANNED_ONCE, False) and state.asyncio_safe:
        connection.run_async(_reset_plans)


async def _reset_plans(driver: Connection) -> None:
    await driver.execute(_PLAN_AS_EVER)


async def plan_anew(session: AsyncSession) -> None:
    """Until the transaction ends, statements are planned for tables as they are now.

    A connection keeps the plan of a prepared statement until its tables are analyzed. One that was made when a table
    was all but empty reads the whole of it each time: to walk along 10,000 names took 7 s instead of 0.02.
    """
    await session.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))


_FOR_LISTS = text(
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('random_page_cost', '1.1', true)"
)


async def plan_for_lists(session: AsyncSession) -> None:
    """Until the transaction ends, plan each statement for what it asks, and for rows that are in memory.

    A search for a rare name goes another way than one for a common one. What Postgres takes for the price of a page
    somewhere else on the disk is of disks that turn: it would rather sort 50,000 runs than look at 1,000 of an index.
    """
    await session.execute(_FOR_LISTS)


# SQLAlchemy leaves errors of connecting as the driver and the operating system raise them. The driver is confused where
# Postgres dies between its greeting and the first statement.
DATABASE_ERRORS = (DBAPIError, PoolTimeoutError, PostgresError, DriverInterfaceError, DriverConfused, OSError)


def sqlstate_of(error: Exception) -> str | None:
    """Postgres' code of an error, whichever way the statement went; None where it did not say."""
    found = getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)
    return found if isinstance(found, str) else None
