"""GET and PUT /api/v1/projects/{project}/retention: after how many days rows of old runs are folded."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BeforeValidator, Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body, as_whole
from noisescale_server.services import retention

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/retention", tags=["projects"])

ProjectName = Annotated[Text, Path(description="name of the project")]


class RetentionBody(Body):
    """Body of PUT."""

    fold_after_days: Annotated[
        int | None,
        Field(
            ge=1,
            le=retention.MAX_DAYS,
            description="days without data after which a run's rows are folded into buckets of 32 steps; null: never",
        ),
        BeforeValidator(as_whole),
    ]


class RetentionAnswer(Answer):
    """How long the project keeps the rows of its runs; null: for ever."""

    fold_after_days: int | None


@router.get("")
async def get_retention(project: ProjectName, session: ReadSession) -> RetentionAnswer:
    """After how many days without data the rows of a run are folded."""
    return RetentionAnswer(fold_after_days=await retention.of_name(session, project))


@router.put("", openapi_extra=body_of(RetentionBody))
async def put_retention(project: ProjectName, request: Request, session: Session, by: Asking) -> RetentionAnswer:
    """Say so from now on. What is folded stays so, whatever is said later."""
    wanted = parse(RetentionBody, await read_body(request))
    return RetentionAnswer(fold_after_days=await retention.put(session, by, project, wanted.fold_after_days))
