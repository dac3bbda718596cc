"""`noisescale export` and `noisescale take-in`: a project as Parquet files, out of a database and into one."""

import argparse
import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from noisescale_server.app import shipped_migrations
from noisescale_server.cli.commands import DatabaseNotReadyError, Subparsers, add_data_dir, reporting
from noisescale_server.cli.upkeep import in_transaction, kept_database
from noisescale_server.process.settings import Settings
from noisescale_server.storage import moving
from noisescale_server.storage.platform import schema_version

if TYPE_CHECKING:
    from noisescale_server.services.moving import TakenIn

NO_PYARROW = "noisescale: this needs pyarrow: pip install pyarrow"


def register_export(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    parser = subparsers.add_parser("export", help="write a project into a folder of Parquet files, exactly")
    parser.add_argument("project", help="its name")
    parser.add_argument("folder", type=Path, help="the folder to write; it must not exist")
    add_data_dir(parser)
    parser.set_defaults(run=lambda given: reporting(partial(export, project=given.project, folder=given.folder))(given))


def register_take_in(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `take-in`."""
    parser = subparsers.add_parser("take-in", help="take a project in that `noisescale export` wrote, row by row")
    parser.add_argument("folder", type=Path, help="what `noisescale export` wrote")
    add_data_dir(parser)
    parser.set_defaults(run=lambda given: reporting(partial(take_in, folder=given.folder))(given))


def export(settings: Settings, *, project: str, folder: Path) -> int:
    """The exit code; the folder holds the project as it was at one moment."""
    try:
        from noisescale_server.services import moving as projects  # noqa: PLC0415 - an extra
    except ImportError:
        print(NO_PYARROW, file=sys.stderr)
        return 1

    async def work(database_url: str) -> dict[str, int]:
        revision = await _revision(database_url)
        async with moving.connected(database_url) as connection:
            return await projects.export(connection, project, folder, revision=revision)

    try:
        with kept_database(settings) as database_url:
            counts = asyncio.run(work(database_url))
    except projects.FolderError as error:
        print(f"noisescale: {error}", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(
        f"{folder} holds {project}: {counts['run']:,} runs, {sum(counts.values()):,} rows of {len(counts)} tables in "
        f"{size:,} bytes; `noisescale take-in {folder}` reads it"
    )
    return 0


def take_in(settings: Settings, *, folder: Path) -> int:
    """The exit code; the database holds the project of the folder."""
    try:
        from noisescale_server.services import moving as projects  # noqa: PLC0415 - an extra
    except ImportError:
        print(NO_PYARROW, file=sys.stderr)
        return 1

    async def work(database_url: str) -> "TakenIn":
        await _revision(database_url)
        async with moving.connected(database_url) as connection:
            return await projects.take_in(connection, folder)

    try:
        with kept_database(settings) as database_url:
            taken = asyncio.run(work(database_url))
    except projects.FolderError as error:
        print(f"noisescale: {error}", file=sys.stderr)
        return 1
    print(f"project {taken.project}: {taken.rows['run']:,} new runs, {sum(taken.rows.values()):,} new rows")
    if taken.known_runs:
        print(f"{taken.known_runs:,} runs were there and are left as they are")
    if taken.deleted_runs:
        print(f"{taken.deleted_runs:,} runs were deleted here and stay so")
    return 0


async def _revision(database_url: str) -> str:
    """Of the database's schema, which must be this release's.

    Raises:
        DatabaseNotReadyError: When it is another one.
    """
    found = await in_transaction(database_url, schema_version.revision)
    if found != shipped_migrations().newest:
        raise DatabaseNotReadyError("the database has another release's tables: run `noisescale migrate` first")
    return found
