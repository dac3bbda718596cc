"""Whether this Postgres keeps what it has committed when it, or its machine, dies."""

from collections.abc import Callable
from typing import Final

from asyncpg import Connection, Record
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.pool import ConnectionPoolEntry

from noisescale_server.storage.platform.driver import read

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
