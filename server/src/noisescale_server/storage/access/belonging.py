"""Which project a run, stream, sweep or reproduction belongs to, whoever asks."""

from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read

_PROJECTS: Final = {
    "run": "SELECT project_id FROM run WHERE id = $1::uuid",
    "sweep": "SELECT project_id FROM sweep WHERE id = $1::uuid",
    "reproduction": "SELECT project_id FROM reproduction WHERE id = $1::uuid",
    "project": "SELECT id FROM project WHERE name = $1::text",
}


async def project_of(session: AsyncSession, kind: str, name: UUID | str) -> UUID | None:
    """The project's id; None where there is no such thing."""
    if kind == "stream" and isinstance(name, UUID):
        run_id = await run_of_stream(session, name)
        return None if run_id is None else await project_of(session, "run", run_id)
    rows = await read(session, _PROJECTS[kind], name)
    found: UUID | None = rows[0][0] if rows else None
    return found


async def run_of_stream(session: AsyncSession, stream_id: UUID) -> UUID | None:
    """The run that the stream writes to, or None."""
    rows = await read(session, "SELECT run_id FROM stream_place WHERE stream_id = $1::uuid", stream_id)
    found: UUID | None = rows[0][0] if rows else None
    return found
