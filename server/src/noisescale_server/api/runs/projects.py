"""GET /api/v1/projects: what a reader can choose from."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.services.runs import projects

router = APIRouter(tags=["projects"])


class ProjectAnswer(BaseModel):
    """A project with its tasks; `num_runs` is null where it was not asked for."""

    name: str
    num_runs: int | None
    tasks: list[str]


class ProjectList(BaseModel):
    """All projects by name."""

    projects: list[ProjectAnswer]


@router.get("/projects")
async def list_projects(
    session: ReadSession, counts: Annotated[bool, Query(description="false: without counting runs, at once")] = True
) -> ProjectList:
    """Every project with the number of its runs and its tasks."""
    found = await projects.list_all(session, are_counted=counts)
    return ProjectList(
        projects=[ProjectAnswer(name=item.name, num_runs=item.num_runs, tasks=list(item.tasks)) for item in found]
    )
