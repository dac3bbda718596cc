"""Whether this process can answer: the database is there and its schema is not older than the code."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import SchemaOutdated
from noisescale_server.storage.platform import epochs, schema_version


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
