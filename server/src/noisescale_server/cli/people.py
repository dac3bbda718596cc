"""`noisescale people`: who may enter what, and taking people out again."""

import argparse
from datetime import UTC, datetime
from functools import partial
from typing import get_args
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.cli.commands import Subparsers
from noisescale_server.cli.keys import add_action, login_address
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import offboarding, people, sessions
from noisescale_server.services.access.access import PersonRole, Principal
from noisescale_server.services.access.offboarding import PersonChange

SOON = "running servers end their logins at once, and refuse their keys within 5 s"


def register_people(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `people` with what can be done about them."""
    parser = subparsers.add_parser("people", help="who may enter what: roles, admins, and taking people out again")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_action(actions, "list", "everybody, with their roles", lambda given: list_people)
    _add(actions, "disable", "end somebody's login, sessions and keys", PersonChange(is_disabled=True))
    _add(actions, "enable", "let somebody log in again; their keys stay ended", PersonChange(is_disabled=False))
    _add(actions, "make-admin", "make somebody an admin of all projects", PersonChange(is_administrator=True))
    _add(actions, "unmake-admin", "take that away again", PersonChange(is_administrator=False))
    link = add_action(
        actions, "login-link", "print a link that logs somebody in once", lambda given: partial(link_for, given.id)
    )
    _add_person(link)
    role = add_action(actions, "set-role", "give somebody a role in a project", lambda given: partial(set_role, given))
    _add_person(role)
    role.add_argument("project")
    role.add_argument("role", choices=get_args(PersonRole))
    gone = add_action(actions, "remove", "take somebody out of a project", lambda given: partial(remove, given))
    _add_person(gone)
    gone.add_argument("project")


def _add(actions: "Subparsers[argparse.ArgumentParser]", name: str, help_text: str, wanted: PersonChange) -> None:
    _add_person(add_action(actions, name, help_text, lambda given: partial(change, given.id, wanted)))


def _add_person(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=UUID, help="of the person, as `noisescale people list` shows it")


async def list_people(session: AsyncSession, by: Principal, _settings: Settings) -> None:
    """Print a line a person."""
    found = await people.list_for(session, by)
    for member in found:
        roles = ["admin of all projects"] if member.person.is_administrator else []
        roles += [f"{role} in {project}" for project, role in member.roles]
        state = "disabled" if member.person.disabled_at else "enabled"
        print(f"{member.person.id}  {state:8}  {', '.join(roles) or 'no role'}  {member.person.name}")
    if not found:
        print("nobody yet: make the first admin with `noisescale keys create-admin NAME`")


async def change(
    person_id: UUID, wanted: PersonChange, session: AsyncSession, by: Principal, _settings: Settings
) -> None:
    """Change the person, and print what they are now."""
    person = await offboarding.change(session, by, person_id, wanted, now=datetime.now(UTC))
    if person.disabled_at is not None:
        print(f"{person.name} is disabled; {SOON}")
    else:
        print(f"{person.name} may log in, and is {'an' if person.is_administrator else 'no'} admin of all projects")


async def link_for(person_id: UUID, session: AsyncSession, by: Principal, settings: Settings) -> None:
    """Print a link that logs the person in once.

    Raises:
        StartRefused: Where it would lead nowhere.
    """
    print(login_address(settings, await sessions.new_link(session, by, person_id, now=datetime.now(UTC))))


async def set_role(given: argparse.Namespace, session: AsyncSession, by: Principal, _settings: Settings) -> None:
    """Give the person the role."""
    await people.set_role(session, by, given.project, given.id, given.role)
    print(f"{given.id} is {given.role} in {given.project}")


async def remove(given: argparse.Namespace, session: AsyncSession, by: Principal, _settings: Settings) -> None:
    """Take the person out of the project."""
    await offboarding.remove_member(session, by, given.project, given.id, now=datetime.now(UTC))
    print(f"{given.id} is no member of {given.project} any more; {SOON}")
