"""Writing down who did what about access."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access.access import Principal, Right
from noisescale_server.storage.access import audit
from noisescale_server.storage.access.tables import AuditRow


async def note(
    session: AsyncSession, by: Principal, action: str, *, project_id: UUID | None = None, **details: str
) -> None:
    """Add an entry to the transaction that does what it says."""
    entry = audit.Entry(
        actor_kind=by.kind,
        actor_id=by.id,
        actor_name=by.name,
        action=action,
        project_id=project_id,
        details=dict(details),
    )
    await audit.add(session, entry)


async def list_page(session: AsyncSession, by: Principal, *, limit: int, before: int | None) -> Sequence[AuditRow]:
    """What was done about the projects that one manages, newest first; for an admin of all projects everything."""
    managed = by.projects_with(Right.MANAGE)
    return await audit.list_page(session, None if managed is None else sorted(managed), limit=limit, before=before)
