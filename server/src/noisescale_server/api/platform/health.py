"""/livez and /readyz: for supervisors and load balancers, without detail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel

from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.platform.errors import DatabaseUnreachable
from noisescale_server.services.platform.health import about

# Whether the database can be relied on, within the patience of whoever watches over this process.

PATIENCE_SECONDS: Final = 1.5
"""Supervisors give up after two or three seconds, and learn nothing then."""


class Readiness:
    """Looks once at a time, however many ask: probes of a frozen database must not take the others' connections."""

    def __init__(self, look: Callable[[], Awaitable[UUID]]) -> None:
        self._look = look
        self._looking: asyncio.Task[UUID] | None = None

    async def check(self) -> UUID:
        """Which database it is, once that says that it can be relied on.

        Raises:
            DatabaseUnreachable: When it says nothing in time.
            Exception: Whatever the look has found.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_now())
            # nobody may be left who hears of its failure
            self._looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        looking = self._looking
        # not `wait_for`: to take a statement back from a frozen database takes seconds, too
        await asyncio.wait({looking}, timeout=PATIENCE_SECONDS)
        if not looking.done():
            raise DatabaseUnreachable(f"the database has said nothing for {PATIENCE_SECONDS} s")
        return await looking

    async def _look_now(self) -> UUID:
        return await self._look()


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


# GET /api/v1/server: which version answers, from which database, and what each project has stored.

server_router = APIRouter(tags=["health"])


class StoredAnswer(Answer):
    """What a project has stored; bytes in proportion to its records."""

    project: str
    num_runs: int
    num_records: int
    num_bytes: int


class ServerAnswer(Answer):
    """What this server is."""

    version: str
    database: str
    projects: list[StoredAnswer]


@server_router.get("/server")
async def get_server(session: ReadSession) -> ServerAnswer:
    """Version, database, and what the projects that one reads have stored."""
    found = await about(session)
    return ServerAnswer(
        version=found.version,
        database=found.database,
        projects=[
            StoredAnswer(
                project=one.project,
                num_runs=one.num_runs,
                num_records=one.num_records,
                num_bytes=one.num_bytes,
            )
            for one in found.projects
        ],
    )
