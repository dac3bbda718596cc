"""Which migrations the database has seen."""

from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import sqlstate_of

UNDEFINED_TABLE = "42P01"


async def revision(session: AsyncSession) -> str | None:
    """The newest migration that ran; None for a database that has none."""
    try:
        found: str | None = await session.scalar(text("SELECT version_num FROM alembic_version"))
    except ProgrammingError as error:
        if sqlstate_of(error) == UNDEFINED_TABLE:
            return None
        raise
    return found
