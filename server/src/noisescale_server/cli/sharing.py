"""`noisescale share` and `noisescale public`: a link that shows one run, and a project that everybody may read."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.access.sharing import MOST_HOURS
from noisescale_server.cli.commands import Subparsers, add_data_dir, reporting
from noisescale_server.cli.upkeep import COMMAND_LINE, in_transaction, kept_database
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import sharing
from noisescale_server.services.access.sharing import NewLink
from noisescale_server.services.platform.errors import DomainError
from noisescale_server.storage.access.tables import RunLink


def register_share(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `share`."""
    parser = subparsers.add_parser("share", help="a link that shows one run, and nothing else, for some time")
    parser.add_argument("run_id", type=UUID, metavar="run", help="its id")
    parser.add_argument("--hours", type=_hours, help="make a link that ends after so many hours")
    parser.add_argument("--end", type=UUID, metavar="LINK", help="end the link of this id now")
    add_data_dir(parser)
    parser.set_defaults(
        run=lambda given: reporting(partial(share, run_id=given.run_id, hours=given.hours, end=given.end))(given)
    )


def register_public(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `public`."""
    parser = subparsers.add_parser("public", help="let everybody read a project without a login, or nobody")
    parser.add_argument("project", help="its name")
    parser.add_argument("is_public", choices=("on", "off"), help="off by default")
    add_data_dir(parser)
    parser.set_defaults(
        run=lambda given: reporting(partial(public, project=given.project, is_public=given.is_public == "on"))(given)
    )


def _hours(text: str) -> int:
    hours = int(text)
    if not 1 <= hours <= MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not 1 to {MOST_HOURS} hours")
    return hours


def share(settings: Settings, *, run_id: UUID, hours: int | None, end: UUID | None) -> int:
    """The exit code; a link is made or ended, and the run's links are listed."""
    origin = str(settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/")
    try:
        with kept_database(settings) as database_url:
            made, found = asyncio.run(
                in_transaction(database_url, partial(_share, run_id=run_id, hours=hours, end=end))
            )
    except DomainError as error:
        print(f"noisescale: {error}", file=sys.stderr)
        return 1
    if made is not None:
        print(f"{origin}/shared?link={made.secret.text}")
        print(f"shows run {run_id} and nothing else until {_moment(made.link.expires_at)}; it is not shown again")
        return 0
    for link in found:
        print(f"{link.id}  by {link.made_by}, until {_moment(link.expires_at)}")
    print(f"{len(found)} link{'' if len(found) == 1 else 's'} of run {run_id}")
    return 0


async def _share(
    session: AsyncSession, *, run_id: UUID, hours: int | None, end: UUID | None
) -> tuple[NewLink | None, Sequence[RunLink]]:
    now = datetime.now(UTC)
    if end is not None:
        await sharing.end_link(session, COMMAND_LINE, run_id, end)
    made = None
    if hours is not None:
        made = await sharing.make_link(session, COMMAND_LINE, run_id, timedelta(hours=hours), now)
    return made, await sharing.links_of(session, run_id, now)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def public(settings: Settings, *, project: str, is_public: bool) -> int:
    """The exit code; everybody may read the project, or nobody without a role."""
    if is_public and not settings.public_projects:
        print("noisescale: its server must be started with NOISESCALE_PUBLIC_PROJECTS=true, too", file=sys.stderr)
        return 1
    try:
        with kept_database(settings) as database_url:
            asyncio.run(in_transaction(database_url, partial(_set_public, project=project, is_public=is_public)))
    except DomainError as error:
        print(f"noisescale: {error}", file=sys.stderr)
        return 1
    print(f"{project} is open to {'everybody' if is_public else 'its people alone'}")
    return 0


async def _set_public(session: AsyncSession, *, project: str, is_public: bool) -> None:
    await sharing.set_public(session, COMMAND_LINE, project, is_public=is_public)
