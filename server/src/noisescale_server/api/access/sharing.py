"""/shared, links of a run, and projects that are open to everybody."""

from datetime import datetime, timedelta
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BeforeValidator, Field

from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.login import login_html, page_headers
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import AppSettings, Now, ReadSession, RunId, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body, as_whole
from noisescale_server.process.client_address import client_address
from noisescale_server.services.access import sharing
from noisescale_server.services.platform.errors import NotAllowed
from noisescale_server.storage.access.tables import RunLink

way_in = APIRouter(include_in_schema=False)
links = APIRouter(prefix="/runs/{run_id}/links", tags=["access"])
# a name may hold slashes
projects = APIRouter(prefix="/projects/{project:path}/public", tags=["access"])

ENDED = "This link has ended, or its time is over. Ask whoever sent it for another one."
HOUR = 3_600
MOST_HOURS = int(sharing.LONGEST.total_seconds()) // HOUR

ProjectName = Annotated[Text, Path(description="name of the project")]


@way_in.get("/shared")
async def come_by_link(request: Request, link: str = "") -> Response:
    """To the run that the link shows; the browser keeps the link in a cookie that scripts cannot read."""
    mode: AccessMode = request.app.state.access_mode
    credentials: Credentials = request.app.state.credentials
    address = client_address(request.scope, request.headers, request.app.state.settings.trusted_proxies)
    principal = await credentials.of_link(link, address)
    if principal is None:
        page = login_html(is_local=mode.is_local, link="", problem=ENDED, onwards="/", start=None)
        return HTMLResponse(page, 403, headers=page_headers())
    response = RedirectResponse(f"/runs/{principal.run_id}", 303, headers={"Referrer-Policy": "no-referrer"})
    mode.remember_link(response, link)
    return response


class LinkBody(Body):
    """Body of POST."""

    hours: Annotated[int, Field(ge=1, le=MOST_HOURS, description="until the link ends"), BeforeValidator(as_whole)] = (
        int(sharing.USUAL.total_seconds()) // HOUR
    )


class LinkAnswer(Answer):
    """A link that shows a run, without its secret."""

    id: UUID
    run_id: UUID
    made_by: str
    created_at: datetime
    expires_at: datetime


class NewLinkAnswer(LinkAnswer):
    """The same, with the address to send: it is shown this once."""

    address: str


class LinkList(Answer):
    """Links of a run that are in force or were made by somebody who may not share any more, newest first."""

    links: list[LinkAnswer]


@links.get("")
async def list_links(run_id: RunId, session: ReadSession, now: Now) -> LinkList:
    """The run's links whose time is not over."""
    return LinkList(links=[LinkAnswer(**_said(one)) for one in await sharing.links_of(session, run_id, now)])


@links.post("", status_code=201, openapi_extra=body_of(LinkBody))
async def make_link(run_id: RunId, request: Request, session: Session, by: Asking, now: Now) -> NewLinkAnswer:
    """A link that shows this run, and nothing else, to whoever has it."""
    wanted = parse(LinkBody, await read_body(request))
    made = await sharing.make_link(session, by, run_id, timedelta(hours=wanted.hours), now)
    mode: AccessMode = request.app.state.access_mode
    origin = mode.public_origin or str(request.base_url).rstrip("/")
    return NewLinkAnswer(**_said(made.link), address=f"{origin}/shared?link={quote(made.secret.text)}")


@links.delete("/{link_id}", status_code=204)
async def end_link(run_id: RunId, link_id: UUID, session: Session, by: Asking) -> None:
    """End a link, at once."""
    await sharing.end_link(session, by, run_id, link_id)


def _said(link: RunLink) -> dict[str, object]:
    return {name: getattr(link, name) for name in ("id", "run_id", "made_by", "created_at", "expires_at")}


class PublicBody(Body):
    """Body of PUT."""

    is_public: bool


class PublicAnswer(Answer):
    """Whether everybody may read the project; `is_allowed`: whether this server lets anything be read so."""

    is_public: bool
    is_allowed: bool


@projects.get("")
async def get_public(project: ProjectName, session: ReadSession, settings: AppSettings) -> PublicAnswer:
    """Whether everybody may read the project."""
    is_public = await sharing.is_public(session, project)
    return PublicAnswer(is_public=is_public, is_allowed=settings.public_projects)


@projects.put("", openapi_extra=body_of(PublicBody))
async def put_public(
    project: ProjectName, request: Request, session: Session, by: Asking, settings: AppSettings
) -> PublicAnswer:
    """Let everybody read the project, or nobody without a role."""
    wanted = parse(PublicBody, await read_body(request))
    if wanted.is_public and not settings.public_projects:
        raise NotAllowed(
            "this server opens no project to everybody: it is started with NOISESCALE_PUBLIC_PROJECTS=true"
        )
    await sharing.set_public(session, by, project, is_public=wanted.is_public)
    credentials: Credentials = request.app.state.credentials
    credentials.forget_after(session)
    return PublicAnswer(is_public=wanted.is_public, is_allowed=settings.public_projects)
