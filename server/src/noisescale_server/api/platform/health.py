"""/livez and /readyz: for supervisors and load balancers, without detail."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel

from noisescale_server.api.platform.readiness import Readiness

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


class Ready(Health):
    """And the database answers: which one it is, a random id that backups keep."""

    database_id: UUID


@router.get("/livez")
async def live() -> Health:
    """This process runs."""
    return Health()


@router.get("/readyz")
async def ready(request: Request) -> Ready:
    """This process can answer: the database is there, keeps what it commits, and has the schema of this release."""
    readiness: Readiness = request.app.state.readiness
    return Ready(database_id=await readiness.check())
