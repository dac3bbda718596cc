"""`noisescale keys`: create, list, revoke and rotate API keys, and make the first admin of a team's server."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.access.mode import origin_of
from noisescale_server.cli.commands import Subparsers, add_data_dir, reporting
from noisescale_server.cli.upkeep import COMMAND_LINE, in_transaction, kept_database
from noisescale_server.process import local_access
from noisescale_server.process.settings import Settings
from noisescale_server.process.start_policy import MIN_SECRET_BYTES, StartRefused
from noisescale_server.services.access import key_text, keys, people, sessions
from noisescale_server.services.access.access import Principal
from noisescale_server.services.access.keys import DEFAULT_DAYS, MAX_DAYS, MadeKey, NewKey
from noisescale_server.services.access.sessions import Secret
from noisescale_server.services.platform.errors import DomainError
from noisescale_server.storage.access import people as stored_people

Work = Callable[[AsyncSession, Principal, Settings], Awaitable[None]]


def register_keys(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `keys` with what can be done to them."""
    parser = subparsers.add_parser("keys", help="API keys, and the first admin of a team's server")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_action(actions, "list", "all keys, without their secrets", lambda given: list_keys)
    create = add_action(
        actions, "create", "make a key; it is printed this once", lambda given: partial(create_key, given)
    )
    create.add_argument("name", help="what it is for")
    create.add_argument("--scope", choices=key_text.SCOPES, default="write", help="default write: a training job")
    create.add_argument("--project", action="append", help="may be given again; default: all projects")
    create.add_argument("--days", type=int, default=DEFAULT_DAYS, help=f"1 to {MAX_DAYS}, default {DEFAULT_DAYS}")
    revoke = add_action(
        actions, "revoke", "end a key, within 5 s everywhere", lambda given: partial(revoke_key, given.id)
    )
    revoke.add_argument("id")
    rotate = add_action(actions, "rotate", "make a key's successor", lambda given: partial(rotate_key, given.id))
    rotate.add_argument("id")
    admin = add_action(
        actions,
        "create-admin",
        "make the first admin; prints a link that logs in once",
        lambda given: partial(create_admin, given),
    )
    admin.add_argument("name")
    admin.add_argument("--email")
    admin.add_argument("--another", action="store_true", help="though there is an admin already")


def add_action(
    actions: "Subparsers[argparse.ArgumentParser]",
    name: str,
    help_text: str,
    work_of: Callable[[argparse.Namespace], Work],
) -> argparse.ArgumentParser:
    """The parser of one thing that can be done to keys or people."""
    parser = actions.add_parser(name, help=help_text)
    add_data_dir(parser)
    parser.set_defaults(run=lambda given: reporting(partial(carry_out, work=work_of(given)))(given))
    return parser


def carry_out(settings: Settings, *, work: Work) -> int:
    """The exit code; the work is done in one transaction, with the secret that the server has."""
    if settings.auth == "required" and settings.secret_key is None:
        raise StartRefused(f"set the NOISESCALE_SECRET_KEY of the server, of at least {MIN_SECRET_BYTES} bytes")
    known = settings.model_copy(update={"secret_key": local_access.secret_key(settings, os.environ)})
    with kept_database(settings) as database_url:
        try:
            asyncio.run(in_transaction(database_url, lambda session: work(session, COMMAND_LINE, known)))
        except DomainError as error:
            print(f"noisescale: {error}", file=sys.stderr)
            return 1
    return 0


async def create_key(given: argparse.Namespace, session: AsyncSession, by: Principal, settings: Settings) -> None:
    """Create a key and print it."""
    new = NewKey(given.name, given.scope, given.project, given.days)
    _say(await keys.create(session, by, new, pepper=_pepper(settings), now=datetime.now(UTC)))


async def rotate_key(key_id: str, session: AsyncSession, by: Principal, settings: Settings) -> None:
    """Create a key's successor and print it."""
    _say(await keys.rotate(session, by, key_id, pepper=_pepper(settings), now=datetime.now(UTC)))
    print(f"{key_id} is still in force: end it with `noisescale keys revoke {key_id}` once the new one is in place")


async def revoke_key(key_id: str, session: AsyncSession, by: Principal, _settings: Settings) -> None:
    """End a key."""
    await keys.revoke(session, by, key_id, now=datetime.now(UTC))
    print(f"{key_id} is revoked; running servers refuse it within 5 s")


async def list_keys(session: AsyncSession, by: Principal, _settings: Settings) -> None:
    """Print a line for each key."""
    now = datetime.now(UTC)
    found = await keys.list_for(session, by)
    names = await stored_people.project_names(session, sorted({one for key in found for one in key.project_ids or ()}))
    for key in found:
        state = "in force" if keys.is_active(key, now) else "revoked" if key.revoked_at else "expired"
        where = "all projects" if key.project_ids is None else ", ".join(names[one] for one in key.project_ids)
        used = "never used" if key.last_used_at is None else f"used {key.last_used_at:%Y-%m-%d %H:%M}"
        print(f"{key.id}  {key.scope:5}  {state:8}  until {key.expires_at:%Y-%m-%d}  {used}  {where}  {key.name}")
    if not found:
        print("no keys: make one with `noisescale keys create NAME`")


async def create_admin(given: argparse.Namespace, session: AsyncSession, by: Principal, settings: Settings) -> None:
    """Create an admin and print the one-time link.

    Raises:
        StartRefused: Where there is an admin and nobody asked for another, or the link would lead nowhere.
    """
    if await stored_people.has_administrator(session) and not given.another:
        raise StartRefused("there is an admin already: log in as that one, or say --another")
    person_id = await people.add(session, by, name=given.name, email=given.email, is_administrator=True)
    link = login_address(settings, await sessions.new_link(session, by, person_id, now=datetime.now(UTC)))
    print(f"{given.name} is an admin of all projects. This link logs in once, within the hour:")
    print(link)


def login_address(settings: Settings, link: Secret) -> str:
    """Where the link logs in.

    Raises:
        StartRefused: Where it would lead nowhere.
    """
    if settings.public_url is None:
        raise StartRefused("set the NOISESCALE_PUBLIC_URL of the server: the link that logs somebody in begins with it")
    return f"{origin_of(settings.public_url)}/login?link={link.text}"


def _say(made: MadeKey) -> None:
    print(f"key {made.id}, until {made.expires_at:%Y-%m-%d}; it is shown this once:", file=sys.stderr)
    print(made.text)


def _pepper(settings: Settings) -> bytes:
    assert settings.secret_key is not None, "carry_out completes the settings"
    return settings.secret_key.get_secret_value().encode()
