"""/livez and /readyz: for supervisors and load balancers, without detail."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from noisescale_server.api.deps import AppSettings, Session
from noisescale_server.services import durability, health

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/livez")
async def live() -> Health:
    """This process runs."""
    return Health()


@router.get("/readyz")
async def ready(request: Request, session: Session, settings: AppSettings) -> Health:
    """This process can answer: the database is there, keeps what it commits, and has the schema of this release."""
    if not settings.allow_unsafe_database:
        await durability.check(session)
    await health.check_ready(session, request.app.state.migrations)
    return Health()
