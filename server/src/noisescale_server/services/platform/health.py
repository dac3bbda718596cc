"""Whether this process can answer: the database is there and its schema is not older than the code; and what it is."""

from dataclasses import dataclass
from importlib.metadata import version
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import DatabaseNotDurable, SchemaOutdated
from noisescale_server.storage import telemetry
from noisescale_server.storage.platform import engine, epochs, schema_version
from noisescale_server.storage.telemetry import Stored


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations that this release ships: all of them, and the newest."""

    known: frozenset[str]
    newest: str


async def check_ready(session: AsyncSession, migrations: Migrations) -> UUID:
    """Which database this is, when requests can be answered.

    A revision this release does not know comes from a newer one, whose migrations keep the previous release working.

    Raises:
        SchemaOutdated: When a migration of this release has not run.
    """
    revision = await schema_version.revision(session)
    if revision is None or (revision in migrations.known and revision != migrations.newest):
        raise SchemaOutdated(revision, migrations.newest)
    return await epochs.database_id(session)


# What this server is: its version, its database, and what is stored.


@dataclass(frozen=True, slots=True)
class About:
    """What a server says of itself.

    Attributes:
        version: Of noisescale-server.
        database: Version of PostgreSQL.
        projects: What each has stored, those with most records first.
    """

    version: str
    database: str
    projects: list[Stored]


async def about(session: AsyncSession) -> About:
    """What this server is, now.

    Args:
        session: Sees the projects that are told.
    """
    database = await telemetry.database_version(session)
    return About(version("noisescale-server"), database, await telemetry.by_project(session))


# Refuses a database that may forget what it has acknowledged.


def refuse_unsafe(switched_off: list[str]) -> None:
    """Raise where a setting that durability needs is off.

    Raises:
        DatabaseNotDurable: Names those that are.
    """
    if switched_off:
        raise DatabaseNotDurable(switched_off)


async def check_durable(session: AsyncSession) -> None:
    """Raise unless this database keeps what it has committed.

    Raises:
        DatabaseNotDurable: When a setting that durability needs is off.
    """
    refuse_unsafe(await engine.switched_off(session))
