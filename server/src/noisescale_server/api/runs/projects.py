"""GET /api/v1/projects: what a reader can choose from."""

from fastapi import APIRouter
from pydantic import BaseModel

from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.services.runs import projects

router = APIRouter(tags=["projects"])


class ProjectAnswer(BaseModel):
    """A project with its tasks."""

    name: str
    num_runs: int
    tasks: list[str]


class ProjectList(BaseModel):
    """All projects by name."""

    projects: list[ProjectAnswer]


@router.get("/projects")
async def list_projects(session: ReadSession) -> ProjectList:
    """Every project with the number of its runs and its tasks."""
    found = await projects.list_all(session)
    return ProjectList(
        projects=[ProjectAnswer(name=item.name, num_runs=item.num_runs, tasks=list(item.tasks)) for item in found]
    )
