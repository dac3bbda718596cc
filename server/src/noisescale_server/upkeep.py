"""The subcommands of `noisescale` for whoever keeps the database: audit, new-epoch."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.commands import Subparsers, add_data_dir, database, reporting
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


def audit(settings: Settings) -> int:
    """The exit code: 1 where a stream's ledger is wrong."""
    with database(settings) as database_url:
        found = asyncio.run(_in_transaction(database_url, ledger.audit))
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
    with database(settings) as database_url:
        epoch = asyncio.run(_in_transaction(database_url, epochs.rotate))
    print(f"the data are in epoch {epoch}: jobs send again what they hold and the database lacks")
    return 0


async def _in_transaction(database_url: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine).begin() as session:
            return await work(session)
    finally:
        await engine.dispose()
