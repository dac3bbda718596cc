"""The subcommands of `noisescale` for whoever keeps the database: audit, backup, restore, new-epoch.

They work while `noisescale up` or `noisescale serve` runs on it, and without.
"""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.platform.errors import means_try_again
from noisescale_server.cli import backups
from noisescale_server.cli.commands import (
    DatabaseNotReadyError,
    Subparsers,
    add_data_dir,
    bring_up_to_date,
    database,
    reporting,
)
from noisescale_server.embedded import running
from noisescale_server.process.settings import Settings
from noisescale_server.services.access.access import EVERYTHING, Principal
from noisescale_server.services.ingest import going_back, ledger
from noisescale_server.services.ingest.going_back import BegunAgain
from noisescale_server.services.ingest.ledger import Audit
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.driver import DATABASE_ERRORS, sqlstate_of
from noisescale_server.storage.platform.engine import create_engine

T = TypeVar("T")

COMMAND_LINE = Principal("local", "command line", os.environ.get("USER", "command line"), everywhere=EVERYTHING)
"""Whoever may run commands on the database."""
LACKING = ("42P01", "42703")
"""SQLSTATEs of a table and of a column that is not there."""


def register_audit(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `audit`: is every stream's ledger true?"""
    parser = subparsers.add_parser("audit", help="check that no record was lost or doubled, in every stream")
    add_data_dir(parser)
    parser.set_defaults(run=reporting(audit))


def register_new_epoch(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `new-epoch`: jobs send again what a restored backup lacks."""
    parser = subparsers.add_parser("new-epoch", help="after restoring a backup: let jobs send again what it lacks")
    add_data_dir(parser)
    _add_keep_keys(parser)
    parser.set_defaults(run=lambda given: reporting(partial(new_epoch, keeps_keys=given.keep_keys))(given))


def register_backup(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `backup`: the whole database in one file, while jobs send."""
    parser = subparsers.add_parser("backup", help="write the whole database into a file, also while jobs send")
    parser.add_argument("file", type=Path, help="the file to write; it must not exist")
    add_data_dir(parser)
    parser.set_defaults(run=lambda arguments: reporting(partial(back_up, file=arguments.file))(arguments))


def register_restore(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `restore`: a backup into an empty database."""
    parser = subparsers.add_parser("restore", help="read a backup into an empty database, and begin a new epoch")
    parser.add_argument("file", type=Path, help="what `noisescale backup` or pg_dump --format=custom wrote")
    add_data_dir(parser)
    _add_keep_keys(parser)
    parser.set_defaults(
        run=lambda given: reporting(partial(restore, file=given.file, keeps_keys=given.keep_keys))(given)
    )


def _add_keep_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-keys",
        action="store_true",
        help="no key was revoked since the backup: leave those in force that were; logins end all the same",
    )


@contextlib.contextmanager
def kept_database(settings: Settings) -> Iterator[str]:
    """The URL of the configured database, or of the embedded one, started for the block unless it runs already."""
    found = settings.database_url or running.find(settings.data_dir / "postgres")
    if found is not None:
        yield found
        return
    with database(settings) as database_url:
        yield database_url


def audit(settings: Settings) -> int:
    """The exit code: 1 where a stream's ledger is wrong."""
    with kept_database(settings) as database_url:
        found = asyncio.run(in_transaction(database_url, ledger.audit))
    return say(found)


def say(found: Audit) -> int:
    """The exit code, 1 where a ledger is wrong; each of these gets a line."""
    for stream in found.wrong:
        print(ledger.sentence(stream), file=sys.stderr)
    if found.wrong:
        print(f"{len(found.wrong)} of {found.num_streams} streams have a wrong ledger", file=sys.stderr)
        return 1
    print(f"{found.num_streams} streams: every record is stored, declared lost or rejected, once")
    return 0


def new_epoch(settings: Settings, *, keeps_keys: bool = False) -> int:
    """The exit code; the database has begun another epoch, without the logins and keys of the one before."""
    with kept_database(settings) as database_url:
        begun = asyncio.run(in_transaction(database_url, partial(_begin_again, keeps_keys=keeps_keys)))
    print(f"the data are in epoch {begun.epoch}: jobs send again what they hold and the database lacks")
    _say_what_ended(begun, keeps_keys=keeps_keys)
    return 0


async def _begin_again(session: AsyncSession, *, keeps_keys: bool) -> BegunAgain:
    return await going_back.begin_again(session, COMMAND_LINE, keeps_keys=keeps_keys, now=datetime.now(UTC))


def _say_what_ended(begun: BegunAgain, *, keeps_keys: bool) -> None:
    print(f"everybody has to log in again ({begun.num_sessions} logins have ended); roles are those of the backup")
    if keeps_keys:
        print("keys that were in force are in force again, also those that were revoked since")
    for key in begun.keys:
        print(
            f"key {key.id} ({key.name}) has ended: it may have been revoked since. `noisescale keys create` makes one"
        )


def back_up(settings: Settings, *, file: Path) -> int:
    """The exit code; the file holds the database as it was at one moment."""
    with kept_database(settings) as database_url:
        backups.write(database_url, file)
    print(f"{file} holds the database, {file.stat().st_size:,} bytes: noisescale restore reads it")
    return 0


def restore(settings: Settings, *, file: Path, keeps_keys: bool = False) -> int:
    """The exit code; the database holds the backup, in this release's schema and in an epoch of its own.

    Its logins and keys have ended: which of them were ended after the backup, it cannot know.
    """
    with kept_database(settings) as database_url:
        owner_url = settings.migration_database_url or database_url
        asyncio.run(in_transaction(owner_url, backups.refuse_unless_empty))
        backups.read(owner_url, file)
        bring_up_to_date(settings, database_url)
        begun = asyncio.run(in_transaction(owner_url, partial(_begin_again, keeps_keys=keeps_keys)))
    print(f"the database holds {file}, in epoch {begun.epoch}: jobs send again what they hold and it lacks")
    _say_what_ended(begun, keeps_keys=keeps_keys)
    return 0


async def in_transaction(database_url: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
    """What the work returns, after COMMIT.

    Raises:
        DatabaseNotReadyError: When the database does not answer, or lacks tables of this release.
    """
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine).begin() as session:
            return await work(session)
    except DATABASE_ERRORS as error:
        sentence = _why_not(error)
        if sentence is None:
            raise
        raise DatabaseNotReadyError(sentence) from error
    finally:
        await engine.dispose()


def _why_not(error: Exception) -> str | None:
    """What to do about an error of the database; None where it would be ours."""
    if sqlstate_of(error) in LACKING:
        return "the database lacks tables of this release: run `noisescale migrate` first"
    return (
        f"the database does not answer ({type(error).__name__}): see that it runs" if means_try_again(error) else None
    )
