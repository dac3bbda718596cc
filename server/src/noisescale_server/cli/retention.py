"""`noisescale retention`: what would be folded and purged, doing it now, and how long a project keeps its rows."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from functools import partial

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.cli.commands import Subparsers, add_data_dir, reporting
from noisescale_server.cli.upkeep import COMMAND_LINE, in_transaction, kept_database
from noisescale_server.process.settings import Settings
from noisescale_server.services import retention
from noisescale_server.services.platform.errors import ProjectNotFound
from noisescale_server.services.retention import Round
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.engine import create_engine


def register_retention(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `retention`."""
    parser = subparsers.add_parser(
        "retention", help="fold rows of old runs and take rows of deleted runs away now; servers do so by themselves"
    )
    parser.add_argument("project", nargs="?", help="the project whose setting is shown or changed; without it: do it")
    parser.add_argument("--days", type=_days, help="fold a run's rows after so many days without data, or `never`")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and leave it")
    add_data_dir(parser)
    parser.set_defaults(run=_run)


def _days(text: str) -> int:
    """0 stands for never."""
    if text == "never":
        return 0
    days = int(text)
    if not 1 <= days <= retention.MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is not 1 to {retention.MAX_DAYS} days, nor `never`")
    return days


def _run(given: argparse.Namespace) -> int:
    if given.project is None and given.days is not None:
        print("noisescale: say whose days these are: noisescale retention PROJECT --days N", file=sys.stderr)
        return 2
    if given.project is not None and given.dry_run:
        print("noisescale: --dry-run looks at all projects: leave the project out", file=sys.stderr)
        return 2
    if given.project is not None:
        return reporting(partial(_setting, project=given.project, days=given.days))(given)
    return reporting(partial(_rounds, is_dry=given.dry_run))(given)


def _setting(settings: Settings, *, project: str, days: int | None) -> int:
    with kept_database(settings) as database_url:
        try:
            kept = asyncio.run(in_transaction(database_url, partial(_set, project=project, days=days)))
        except ProjectNotFound as error:
            print(f"noisescale: {error}", file=sys.stderr)
            return 1
    when = "never folded" if kept is None else f"folded after {kept} days without data"
    print(f"rows of runs of {project} are {when}")
    return 0


async def _set(session: AsyncSession, *, project: str, days: int | None) -> int | None:
    if days is None:
        return await retention.of_name(session, project)
    return await retention.put(session, COMMAND_LINE, project, days or None)


def _rounds(settings: Settings, *, is_dry: bool) -> int:
    with kept_database(settings) as database_url:
        done = asyncio.run(_work(database_url, is_dry=is_dry))
    if is_dry:
        print(f"would have {done.sentence}; nothing is changed")
        return 0
    print(done.sentence)
    if done.is_busy:
        print("a server of this database is at it as well, and goes on")
    return 0


async def _work(database_url: str, *, is_dry: bool) -> Round:
    # one run at a time, but a count over a long one may take longer than a page may
    engine = create_engine(database_url, pool_size=2, statement_timeout_seconds=600)
    sessions = session_factory(engine)
    total = Round()
    try:
        if is_dry:
            return await retention.look(sessions, datetime.now(UTC))
        while True:
            done = await retention.work(sessions, datetime.now(UTC))
            total = total.plus(done)
            if done.is_busy or not done.has_more:
                return total
    finally:
        await engine.dispose()
