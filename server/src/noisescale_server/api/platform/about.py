"""GET /api/v1/server: which version answers, from which database, and what each project has stored."""

from fastapi import APIRouter

from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.platform.health import about

router = APIRouter(tags=["health"])


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


@router.get("/server")
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
