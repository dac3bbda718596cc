"""/api/v1/projects/{project}/views: what pages of the dashboard show, under names that a team shares."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import NO_CONTROL_CHARACTER, ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body, Name
from noisescale_server.services import views as shared
from noisescale_server.storage.views import SavedView

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/views", tags=["projects"])

ProjectName = Annotated[Text, Path(description="name of the project")]
ViewId = Annotated[UUID, Path(description="UUID of the view")]
Page = Literal["overview", "runs", "compare", "sweeps", "planner"]
MAX_QUERY = 4_000


class NewView(Body):
    """Body of POST."""

    name: Name
    page: Page
    query: Annotated[
        str,
        Field(
            max_length=MAX_QUERY,
            json_schema_extra=NO_CONTROL_CHARACTER,
            pattern=r"^[!-~]*$",
            description="the query part of the page's address, percent-encoded, without the question mark",
        ),
    ] = ""


class ViewPatch(Body):
    """Body of PATCH."""

    name: Name


class ViewAnswer(Answer):
    """A view that the project shares."""

    id: UUID
    name: str
    author: str
    page: Page
    query: str
    created_at: datetime


class ViewList(Answer):
    """All views of a project by name."""

    views: list[ViewAnswer]


@router.get("")
async def list_views(project: ProjectName, session: ReadSession) -> ViewList:
    """What the project shares."""
    return ViewList(views=[_answer(one) for one in await shared.of_project(session, project)])


@router.post("", status_code=201, response_model=ViewAnswer, openapi_extra=body_of(NewView))
async def add_view(project: ProjectName, request: Request, session: Session, by: Asking) -> ViewAnswer:
    """Share what a page shows, under a name that the project has not given yet."""
    wanted = parse(NewView, await read_body(request))
    added = await shared.add(session, by, project, name=wanted.name, page=wanted.page, query=wanted.query)
    return _answer(added)


@router.patch("/{view_id}", response_model=ViewAnswer, openapi_extra=body_of(ViewPatch))
async def rename_view(project: ProjectName, view_id: ViewId, request: Request, session: Session) -> ViewAnswer:
    """Give a view another name."""
    wanted = parse(ViewPatch, await read_body(request))
    return _answer(await shared.rename(session, project, view_id, wanted.name))


@router.delete("/{view_id}", status_code=204)
async def delete_view(project: ProjectName, view_id: ViewId, session: Session) -> None:
    """Share a view no more; what it shows stays."""
    await shared.delete(session, project, view_id)


def _answer(one: SavedView) -> ViewAnswer:
    return ViewAnswer(
        id=one.id, name=one.name, author=one.author, page=one.page, query=one.query, created_at=one.created_at
    )
