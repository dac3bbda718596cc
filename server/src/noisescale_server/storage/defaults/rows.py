"""Reading and writing what projects take for granted."""

from collections.abc import Collection
from dataclasses import asdict
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.defaults import Defaults
from noisescale_server.storage.defaults.table import ProjectDefault
from noisescale_server.storage.platform.driver import read

_COLUMNS = ("device_hour_price", "currency", "usd_per_unit", "preference", "examples_per_step", "fixed_hardware")
_READ = f"SELECT project_id, {', '.join(_COLUMNS)} FROM project_default WHERE project_id = ANY($1::uuid[])"  # noqa: S608  # names of columns


async def of_projects(session: AsyncSession, project_ids: Collection[UUID]) -> dict[UUID, Defaults]:
    """By project; those that say nothing are left out."""
    rows = await read(session, _READ, list(set(project_ids)))
    return {row["project_id"]: Defaults(**{name: row[name] for name in _COLUMNS}) for row in rows}


async def put(session: AsyncSession, project_id: UUID, wanted: Defaults) -> None:
    """Let the project say exactly this."""
    values = asdict(wanted)
    stored = insert(ProjectDefault).values(project_id=project_id, changed_at=func.now(), **values)
    changed = {**values, "changed_at": stored.excluded.changed_at}
    await session.execute(stored.on_conflict_do_update(index_elements=[ProjectDefault.project_id], set_=changed))
