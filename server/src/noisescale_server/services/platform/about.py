"""What this server is: its version, its database, and what is stored."""

from dataclasses import dataclass
from importlib.metadata import version

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage import telemetry
from noisescale_server.storage.telemetry import Stored


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
