"""/livez and /readyz: for supervisors and load balancers, without detail."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from noisescale_server.api.deps import Session
from noisescale_server.services import health

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/livez")
async def live() -> Health:
    """This process runs."""
    return Health()


@router.get("/readyz")
async def ready(request: Request, session: Session) -> Health:
    """This process can answer: the database is there, with the schema of this release."""
    await health.check_ready(session, request.app.state.migrations)
    return Health()
