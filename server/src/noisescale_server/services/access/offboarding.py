"""Taking people out again: of a project, of administration, or of everything, and their keys with them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit, keys
from noisescale_server.services.access.access import Principal
from noisescale_server.services.access.people import managed_project, require_administrator
from noisescale_server.services.platform.errors import LastAdministrator, NotAllowed, PersonNotFound
from noisescale_server.storage.access import people, web_sessions
from noisescale_server.storage.access.tables import Person


@dataclass(frozen=True, slots=True)
class PersonChange:
    """What becomes of a person; None leaves it as it is.

    Attributes:
        is_administrator: Whether they are an admin of all projects.
        is_disabled: Whether they are nobody here: no login, no session, no key.
    """

    is_administrator: bool | None = None
    is_disabled: bool | None = None


async def change(
    session: AsyncSession, by: Principal, person_id: UUID, wanted: PersonChange, *, now: datetime
) -> Person:
    """The person as they are from now on. Sessions, links and keys of somebody who is disabled have ended for good.

    Raises:
        NotAllowed: Unless an admin of all projects asks.
        PersonNotFound: When there is no such person.
        LastAdministrator: When nobody would be left who can let others in.
    """
    what = "disabling people and choosing admins of all projects"
    require_administrator(by, what)
    # before anything is looked at: of two admins who take each other out at once, the later one waits, and is refused
    administrators = await people.hold_administrators(session)
    if by.person_id is not None and by.person_id not in administrators:
        raise NotAllowed(f"{what} needs an admin of all projects, and {by.name!r} is none any more")
    person = await people.hold(session, person_id)
    if person is None:
        raise PersonNotFound(person_id)
    was_administrator, was_disabled = person.is_administrator, person.disabled_at is not None
    is_administrator = was_administrator if wanted.is_administrator is None else wanted.is_administrator
    is_disabled = was_disabled if wanted.is_disabled is None else wanted.is_disabled
    if administrators == {person_id} and (is_disabled or not is_administrator):
        raise LastAdministrator(person.name)
    disabled_at = (person.disabled_at or now) if is_disabled else None
    await people.change(session, person_id, is_administrator=is_administrator, disabled_at=disabled_at)
    if is_administrator != was_administrator:
        said = "administration given" if is_administrator else "administration taken away"
        await audit.note(session, by, said, person=str(person_id), name=person.name)
    if is_disabled != was_disabled:
        said = "person disabled" if is_disabled else "person enabled"
        await audit.note(session, by, said, person=str(person_id), name=person.name)
    if is_disabled:
        await web_sessions.end_all_of(session, person_id)
        await web_sessions.end_links_of(session, person_id)
    await keys.end_those_that_open_nothing(session, by, person_id, now=now)
    await session.refresh(person)
    return person


async def remove_member(session: AsyncSession, by: Principal, project: str, person_id: UUID, *, now: datetime) -> None:
    """Take the person out of the project; their keys open nothing there, also if they come back.

    Raises:
        ProjectNotFound: When there is no such project, or not for this principal.
        NotAllowed: Unless he manages the project.
        PersonNotFound: When the person was not a member.
    """
    project_id = await managed_project(session, by, project)
    # a key that is being made now is either there to be ended, or made by somebody who is no member any more
    await people.hold(session, person_id)
    if not await people.remove(session, project_id, person_id):
        raise PersonNotFound(person_id)
    await audit.note(session, by, "member removed", project_id=project_id, person=str(person_id))
    await keys.end_those_that_open_nothing(session, by, person_id, now=now)
