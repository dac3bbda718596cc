"""/livez and /readyz: for supervisors and load balancers, without detail."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from noisescale_server.api.readiness import Readiness

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/livez")
async def live() -> Health:
    """This process runs."""
    return Health()


@router.get("/readyz")
async def ready(request: Request) -> Health:
    """This process can answer: the database is there, keeps what it commits, and has the schema of this release."""
    readiness: Readiness = request.app.state.readiness
    await readiness.check()
    return Health()
