"""The subcommands of `noisescale` for whoever keeps the database: audit, backup, restore, new-epoch.

They work while `noisescale up` or `noisescale serve` runs on it, and without.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server import backups, migrating
from noisescale_server.commands import Subparsers, add_data_dir, database, reporting
from noisescale_server.embedded import running
from noisescale_server.services import ledger
from noisescale_server.services.ledger import Audit
from noisescale_server.settings import Settings
from noisescale_server.storage import epochs
from noisescale_server.storage.engine import create_engine, session_factory

T = TypeVar("T")


def register_audit(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `audit`: is every stream's ledger true?"""
    parser = subparsers.add_parser("audit", help="check that no record was lost or doubled, in every stream")
    add_data_dir(parser)
    parser.set_defaults(run=reporting(audit))


def register_new_epoch(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `new-epoch`: jobs send again what a restored backup lacks."""
    parser = subparsers.add_parser("new-epoch", help="after restoring a backup: let jobs send again what it lacks")
    add_data_dir(parser)
    parser.set_defaults(run=reporting(new_epoch))


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
    parser.set_defaults(run=lambda arguments: reporting(partial(restore, file=arguments.file))(arguments))


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


def new_epoch(settings: Settings) -> int:
    """The exit code; the database has begun another epoch."""
    with kept_database(settings) as database_url:
        epoch = asyncio.run(in_transaction(database_url, epochs.rotate))
    print(f"the data are in epoch {epoch}: jobs send again what they hold and the database lacks")
    return 0


def back_up(settings: Settings, *, file: Path) -> int:
    """The exit code; the file holds the database as it was at one moment."""
    with kept_database(settings) as database_url:
        backups.write(database_url, file)
    print(f"{file} holds the database, {file.stat().st_size:,} bytes: noisescale restore reads it")
    return 0


def restore(settings: Settings, *, file: Path) -> int:
    """The exit code; the database holds the backup, in this release's schema and in an epoch of its own."""
    with kept_database(settings) as database_url:
        asyncio.run(in_transaction(database_url, backups.refuse_unless_empty))
        backups.read(database_url, file)
        migrating.migrate(database_url)
        epoch = asyncio.run(in_transaction(database_url, epochs.rotate))
    print(f"the database holds {file}, in epoch {epoch}: jobs send again what they hold and it lacks")
    return 0


async def in_transaction(database_url: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
    """What the work returns, after COMMIT."""
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine).begin() as session:
            return await work(session)
    finally:
        await engine.dispose()
