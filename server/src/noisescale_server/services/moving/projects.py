"""A project out of a database into a folder, and back: the same rows in the same or another server."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from noisescale_server.services.moving.files import FolderError, TableReader, TableWriter, schema_of
from noisescale_server.storage import moving as rows
from noisescale_server.storage.moving import NAMES, OF_PROJECT, Connection

BY_SWEEP = frozenset({"sweep_run", "calibration"})
ADDED_LATER = frozenset({"project_baseline", "run_comment"})


async def export(connection: Connection, project: str, folder: Path, *, revision: str) -> dict[str, int]:
    """Write a project into a new folder as it is at one moment; rows by table.

    It appears under its name when it is complete. Memory holds a row group of 16 MiB at most, however large it is.

    Args:
        connection: Of the database, in no transaction.
        project: Its name.
        folder: That does not exist yet.
        revision: Version of the database's schema.

    Raises:
        FolderError: When the folder exists, or there is no such project.
    """
    unfinished = _unfinished(folder)
    counts: dict[str, int] = {}
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        project_id = await rows.project_id(connection, project)
        if project_id is None:
            raise FolderError(f"there is no project {project!r}: `noisescale runs` lists runs with theirs")
        unfinished.mkdir(parents=True)
        try:
            runs = await rows.run_ids(connection, project_id)
            for table in NAMES:
                with TableWriter(unfinished, table, schema_of(table, project, revision)) as writer:
                    async for part in rows.parts(connection, table, project_id, runs):
                        writer.add(part)
                counts[table] = writer.num_rows
        except BaseException:
            shutil.rmtree(unfinished)
            raise
    unfinished.rename(folder)
    return counts


def _unfinished(folder: Path) -> Path:
    """Where a folder that does not exist is written first."""
    if folder.exists():
        raise FolderError(f"{folder} exists already: choose another name, or remove it")
    return folder.with_name(f"{folder.name}.unfinished")


@dataclass(slots=True)
class TakenIn:
    """What came of a folder.

    Attributes:
        project: Its name.
        rows: New ones, by table.
        known_runs: Runs that were there; they are left as they are.
        deleted_runs: Runs that were deleted here; they stay so.
    """

    project: str
    rows: dict[str, int] = field(default_factory=dict)
    known_runs: int = 0
    deleted_runs: int = 0


async def take_in(connection: Connection, folder: Path) -> TakenIn:
    """Put the project of a folder into the database, all of it or nothing; a second time nothing is new.

    A project or task of the same name is the same one. A run that is there is left as it is, with all its rows.

    Raises:
        FolderError: When the folder is none of ours, or holds a stream that here belongs to another run.
    """
    readers = {table: TableReader(folder, table) for table in NAMES if _is_to_be_read(folder, table)}
    taken = TakenIn(readers["project"].project)
    try:
        async with connection.transaction():
            await _take_in(connection, readers, taken)
    except asyncpg.UniqueViolationError as error:
        raise FolderError(f"nothing was taken in: {error}") from error
    return taken


async def _take_in(connection: Connection, readers: dict[str, TableReader], taken: TakenIn) -> None:
    ids = _ids_of(readers["run"])
    known, deleted = await rows.known(connection, "run", ids), await rows.known(connection, "deleted_run", ids)
    taken.known_runs, taken.deleted_runs = len(known), len(deleted)
    left = known | deleted
    sweeps = await rows.known(connection, "sweep", _ids_of(readers["sweep"]))
    renamed: dict[UUID, UUID] = {}

    def is_new(table: str, row: dict[str, Any]) -> bool:
        if table == "run":
            return row["id"] not in left
        if table == "project_baseline":
            return row["run_id"] not in deleted
        if table in BY_SWEEP:
            return row["sweep_id"] not in sweeps
        return table in OF_PROJECT or row["run_id"] not in left

    for table, reader in readers.items():
        num_new = 0
        for part in reader.parts():
            named = [dict(zip(reader.columns, row, strict=True)) for row in part]
            new = [_with_ids_of_here(row, renamed) for row in named if is_new(table, row)]
            values = [[row[name] for name in reader.columns] for row in new]
            num_new += await rows.put(connection, table, reader.columns, values)
            if table in ("project", "task"):
                renamed |= await _ids_of_here(connection, table, new)
        taken.rows[table] = num_new


def _is_to_be_read(folder: Path, table: str) -> bool:
    # releases before these tables wrote folders without them
    return table not in ADDED_LATER or (folder / f"{table}.parquet").is_file()


def _ids_of(reader: TableReader) -> list[UUID]:
    place = reader.columns.index("id")
    return [row[place] for row in chain.from_iterable(reader.parts())]


def _with_ids_of_here(row: dict[str, Any], renamed: dict[UUID, UUID]) -> dict[str, Any]:
    ids = {name: renamed.get(row[name], row[name]) for name in ("project_id", "task_id", "trial_of") if name in row}
    return row | ids


async def _ids_of_here(connection: Connection, table: str, put: Sequence[dict[str, Any]]) -> dict[UUID, UUID]:
    """Of projects and tasks that were there under their names: the folder's id → this database's."""
    found: dict[UUID, UUID] = {}
    for row in put:
        if table == "project":
            here = await rows.project_id(connection, row["name"])
        else:
            here = (await rows.task_ids(connection, row["project_id"])).get(row["name"])
        if here is None:
            raise FolderError(f"{table} {row['name']!r} cannot be taken in: its id belongs to another one here")
        found[row["id"]] = here
    return found
