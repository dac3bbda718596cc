"""What was done about access, newest first."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.tables import AuditRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that was done: by whom, and what. Names and ids, never a secret."""

    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    project_id: UUID | None
    details: dict[str, Any]


async def add(session: AsyncSession, entry: Entry) -> None:
    """Insert an entry, in the transaction that does what it says."""
    await session.execute(insert(AuditRow).values(asdict(entry)))


async def list_page(
    session: AsyncSession, project_ids: Sequence[UUID] | None, *, limit: int, before: int | None
) -> Sequence[AuditRow]:
    """Entries about these projects, newest first; None: all entries, also those about no project."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
    if project_ids is not None:
        query = query.where(AuditRow.project_id.in_(project_ids))
    if before is not None:
        query = query.where(AuditRow.id < before)
    return (await session.scalars(query)).all()
