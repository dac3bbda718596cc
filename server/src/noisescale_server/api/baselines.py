"""/api/v1/projects/{project}/baseline: the run that others of the project are compared to."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import Now, ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body
from noisescale_server.services import baselines
from noisescale_server.services.baselines import Baseline

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/baseline", tags=["projects"])

ProjectName = Annotated[Text, Path(description="name of the project")]


class BaselineBody(Body):
    """Body of PUT."""

    run_id: Annotated[UUID, Field(strict=False, description="a run of the project")]


class PinnedRun(Answer):
    """The run that others are compared to."""

    run_id: UUID
    name: str
    pinned_at: datetime


class BaselineAnswer(Answer):
    """The project's baseline; null where nothing is pinned."""

    baseline: PinnedRun | None


@router.get("")
async def get_baseline(project: ProjectName, session: ReadSession) -> BaselineAnswer:
    """Which run of the project is pinned."""
    return _answer(await baselines.of_project(session, project))


@router.put("", response_model=BaselineAnswer, openapi_extra=body_of(BaselineBody))
async def pin_baseline(
    project: ProjectName, request: Request, session: Session, by: Asking, now: Now
) -> BaselineAnswer:
    """Pin a run of the project, instead of the one that is."""
    wanted = parse(BaselineBody, await read_body(request))
    return _answer(await baselines.pin(session, by, project, wanted.run_id, now))


@router.delete("", status_code=204)
async def unpin_baseline(project: ProjectName, session: Session, by: Asking) -> None:
    """Let nothing be pinned."""
    await baselines.unpin(session, by, project)


def _answer(found: Baseline | None) -> BaselineAnswer:
    if found is None:
        return BaselineAnswer(baseline=None)
    return BaselineAnswer(baseline=PinnedRun(run_id=found.run_id, name=found.name, pinned_at=found.pinned_at))
