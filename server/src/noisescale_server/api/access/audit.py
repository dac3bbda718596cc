"""GET /api/v1/audit: who did what about keys, members and logins."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.deps import MAX_INT64, Session
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.access import audit

router = APIRouter(tags=["access"])


class AuditQuery(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    before: Annotated[int | None, Field(ge=0, le=MAX_INT64, description="entries older than the one of this id")] = None


class AuditEntry(Answer):
    """One thing that was done."""

    id: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    details: dict[str, Any]


class AuditList(Answer):
    """Entries, newest first; `next_before` asks for older ones, null where there are none."""

    entries: list[AuditEntry]
    next_before: int | None


@router.get("/audit")
async def read_audit(query: Annotated[AuditQuery, Query()], session: Session, by: Asking) -> AuditList:
    """What was done about the projects that you manage; for an admin of all projects everything."""
    # one more than asked for tells whether older ones follow
    found = await audit.list_page(session, by, limit=query.limit + 1, before=query.before)
    shown = found[: query.limit]
    entries = [AuditEntry(**{name: getattr(one, name) for name in AuditEntry.model_fields}) for one in shown]
    return AuditList(entries=entries, next_before=entries[-1].id if len(found) > query.limit else None)
