"""People: who they are, and what they are in which project."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import EVERYTHING, NOTHING, RIGHTS_OF_ROLE, PersonRole, Principal, Right
from noisescale_server.services.platform.errors import NotAllowed, PersonNotFound, ProjectNotFound
from noisescale_server.storage.access import api_keys, people, web_sessions
from noisescale_server.storage.access.people import Enabled
from noisescale_server.storage.access.tables import Person


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody with the roles that the reader may know of: (project, role)."""

    person: Person
    roles: tuple[tuple[str, str], ...]


async def principal_of(session: AsyncSession, person_id: UUID) -> Principal | None:
    """The person as a principal; None where there is no such person, or not any more."""
    return (await principals_of(session, {person_id})).get(person_id)


async def principals_of(session: AsyncSession, person_ids: Collection[UUID]) -> dict[UUID, Principal]:
    """These people as principals; without those that are not there, and those that are disabled."""
    found = await people.enabled(session, person_ids) if person_ids else []
    return {person.id: principal_from(person) for person in found}


def principal_from(person: Enabled) -> Principal:
    """The person as a principal."""
    rights = {project_id: RIGHTS_OF_ROLE[role] for project_id, role in person.roles.items()}
    everywhere = EVERYTHING if person.is_administrator else NOTHING
    return Principal("person", str(person.id), person.name, everywhere=everywhere, rights=rights, person_id=person.id)


async def list_for(session: AsyncSession, by: Principal) -> list[Member]:
    """Members of the projects that one manages; for an admin of all projects everybody."""
    managed = by.projects_with(Right.MANAGE)
    rows = await people.members(session, None if managed is None else sorted(managed))
    roles: dict[UUID, list[tuple[str, str]]] = {}
    for person_id, project, _, role in rows:
        roles.setdefault(person_id, []).append((project, role))
    everybody = await people.everybody(session)
    return [
        Member(person, tuple(roles.get(person.id, ()))) for person in everybody if managed is None or person.id in roles
    ]


async def member(session: AsyncSession, person: Person) -> Member:
    """The person with every role."""
    rows = await people.members(session, None)
    return Member(person, tuple((project, role) for person_id, project, _, role in rows if person_id == person.id))


async def add(session: AsyncSession, by: Principal, *, name: str, email: str | None, is_administrator: bool) -> UUID:
    """The id of a new person, who can log in by a one-time link.

    Raises:
        NotAllowed: Unless an admin of all projects asks.
    """
    require_administrator(by, "adding people")
    person_id = await people.add(session, name=name, email=email, is_administrator=is_administrator)
    what = "administrator added" if is_administrator else "person added"
    await audit.note(session, by, what, person=str(person_id), name=name)
    return person_id


async def set_role(session: AsyncSession, by: Principal, project: str, person_id: UUID, role: PersonRole) -> None:
    """Set the person's role in the project.

    Raises:
        ProjectNotFound: When there is no such project, or not for this principal.
        NotAllowed: Unless he manages the project.
        PersonNotFound: When there is no such person.
    """
    project_id = await managed_project(session, by, project)
    if await people.get(session, person_id) is None:
        raise PersonNotFound(person_id)
    await people.set_role(session, project_id, person_id, role)
    await audit.note(session, by, "role set", project_id=project_id, person=str(person_id), role=role)


async def log_out_everywhere(session: AsyncSession, by: Principal, person_id: UUID) -> None:
    """Log out every browser of the person.

    Raises:
        NotAllowed: Unless it is oneself, or an admin of all projects asks.
    """
    if by.person_id != person_id:
        require_administrator(by, "logging others out")
    await web_sessions.end_all_of(session, person_id)
    await audit.note(session, by, "logged out everywhere", person=str(person_id))


async def managed_project(session: AsyncSession, by: Principal, project: str) -> UUID:
    """The id of a project that one manages.

    Raises:
        ProjectNotFound: When there is no such project, or not for this principal.
        NotAllowed: When another role would be needed.
    """
    (project_id,) = await api_keys.project_ids(session, [project], creates=False)
    if project_id is None or not by.rights_in(project_id):
        raise ProjectNotFound(project)
    if not by.may(Right.MANAGE, project_id):
        raise NotAllowed(f"this needs the role admin in project {project!r}")
    return project_id


def require_administrator(by: Principal, what: str) -> None:
    """Raise NotAllowed unless an admin of all projects asks."""
    if not by.is_administrator:
        raise NotAllowed(f"{what} needs an admin of all projects")
