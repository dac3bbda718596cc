"""/api/v1/people and /api/v1/projects/{project}/members: who may enter what."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, Field
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import NO_CONTROL_CHARACTER, Now, Session, body_of, refuse_control_characters
from noisescale_server.api.platform.schemas import Answer, Body, Name
from noisescale_server.services.access import offboarding, people, sessions
from noisescale_server.services.access.access import PersonRole
from noisescale_server.services.access.offboarding import PersonChange
from noisescale_server.services.platform.errors import NotAllowed

router = APIRouter(tags=["access"])

PersonId = Annotated[UUID, Path(description="UUID of the person")]
ProjectName = Annotated[
    str,
    Path(max_length=256, description="name of the project", json_schema_extra=NO_CONTROL_CHARACTER),
    AfterValidator(refuse_control_characters),
]


class NewPersonBody(Body):
    """Body of POST /api/v1/people."""

    name: Name
    email: Annotated[Name | None, Field(description="shown beside the name; nothing is sent there")] = None
    is_administrator: bool = False


class PersonChangeBody(Body):
    """Body of PATCH /api/v1/people/{person_id}; what is left out stays as it is."""

    is_administrator: Annotated[bool | None, Field(description="an admin of all projects")] = None
    is_disabled: Annotated[
        bool | None, Field(description="no login any more; sessions, login links and keys end for good")
    ] = None


class RoleBody(Body):
    """Body of PUT /api/v1/projects/{project}/members/{person_id}."""

    role: PersonRole


class MemberRole(Answer):
    """A role in a project."""

    project: str
    role: PersonRole


class PersonAnswer(Answer):
    """Somebody, with the roles in the projects that you manage."""

    id: UUID
    name: str
    email: str | None
    is_administrator: bool
    disabled_at: datetime | None
    created_at: datetime
    roles: list[MemberRole]


class PersonList(Answer):
    """People by name."""

    people: list[PersonAnswer]


class NewPersonAnswer(Answer):
    """The id of a new person."""

    id: UUID


class LoginLinkAnswer(Answer):
    """A link that logs a person in once, within the hour; it is shown this once."""

    url: str


@router.get("/people")
async def list_people(session: Session, by: Asking) -> PersonList:
    """The members of the projects that you manage; for an admin of all projects everybody."""
    found = await people.list_for(session, by)
    return PersonList(people=[_answer(member) for member in found])


@router.post("/people", status_code=201, response_model=NewPersonAnswer, openapi_extra=body_of(NewPersonBody))
async def add_person(request: Request, session: Session, by: Asking) -> NewPersonAnswer:
    """Add somebody who logs in by a one-time link; those of the organisation's login add themselves."""
    body = parse(NewPersonBody, await read_body(request))
    added = await people.add(session, by, name=body.name, email=body.email, is_administrator=body.is_administrator)
    return NewPersonAnswer(id=added)


@router.patch("/people/{person_id}", response_model=PersonAnswer, openapi_extra=body_of(PersonChangeBody))
async def change_person(person_id: PersonId, request: Request, session: Session, by: Asking, now: Now) -> PersonAnswer:
    """Make somebody an admin of all projects or not any more, or disable them: the last admin stays."""
    wanted = PersonChange(**parse(PersonChangeBody, await read_body(request)).model_dump())
    person = await offboarding.change(session, by, person_id, wanted, now=now)
    _forget_after(request, session)
    return _answer(await people.member(session, person))


@router.post("/people/{person_id}/login-links", status_code=201)
async def make_login_link(
    person_id: PersonId, request: Request, session: Session, by: Asking, now: Now
) -> LoginLinkAnswer:
    """Make a link that logs the person in once; only for an admin of all projects, since it opens what they may."""
    mode: AccessMode = request.app.state.access_mode
    if not by.is_administrator:
        raise NotAllowed("a login link needs an admin of all projects: it opens everything that the person may")
    if mode.is_local or mode.public_origin is None:
        raise NotAllowed("a server for one user has no people to log in: start it with NOISESCALE_AUTH=required")
    link = await sessions.new_link(session, by, person_id, now=now)
    return LoginLinkAnswer(url=f"{mode.public_origin}/login?link={link.text}")


@router.delete("/people/{person_id}/sessions", status_code=204)
async def log_out_everywhere(person_id: PersonId, request: Request, session: Session, by: Asking) -> None:
    """Log every browser of the person out."""
    await people.log_out_everywhere(session, by, person_id)
    _forget_after(request, session)


@router.put("/projects/{project:path}/members/{person_id}", status_code=204, openapi_extra=body_of(RoleBody))
async def set_role(project: ProjectName, person_id: PersonId, request: Request, session: Session, by: Asking) -> None:
    """Make somebody viewer, member or admin of a project."""
    body = parse(RoleBody, await read_body(request))
    await people.set_role(session, by, project, person_id, body.role)
    _forget_after(request, session)


@router.delete("/projects/{project:path}/members/{person_id}", status_code=204)
async def remove_member(
    project: ProjectName, person_id: PersonId, request: Request, session: Session, by: Asking, now: Now
) -> None:
    """Take somebody out of a project; their keys for it end, and do not come back with them."""
    await offboarding.remove_member(session, by, project, person_id, now=now)
    _forget_after(request, session)


def _forget_after(request: Request, session: AsyncSession) -> None:
    """Let this process look up again who may do what, once that is committed."""
    credentials: Credentials = request.app.state.credentials
    credentials.forget_after(session)


def _answer(member: people.Member) -> PersonAnswer:
    person = member.person
    return PersonAnswer(
        id=person.id,
        name=person.name,
        email=person.email,
        is_administrator=person.is_administrator,
        disabled_at=person.disabled_at,
        created_at=person.created_at,
        roles=[MemberRole(project=project, role=role) for project, role in member.roles],
    )
