"""A project out of a database into a folder, and back: the same rows in the same or another server."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import asyncpg
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Double, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from noisescale_server.storage import moving as rows
from noisescale_server.storage.moving import NAMES, OF_PROJECT, Connection, table_of

FORMAT: Final = 1
BYTES_OF_A_ROW_GROUP: Final = 16 << 20
ROWS_READ_AT_ONCE: Final = 2_000

UNITS: Final = {
    "step": "optimizer steps, from 0",
    "num_updates": "optimizer updates",
    "wall_time": "s since 1970-01-01 UTC, by the job's clock",
    "examples": "examples since the run began",
    "micro_batch_size": "examples",
    "global_batch": "examples",
    "sum_trace_cov": "squared gradient × examples, summed over updates",
    "sum_grad_sq_norm": "squared gradient, summed over updates",
    "sum_trace_cov_sq": "(squared gradient × examples)², summed over updates",
    "sum_grad_sq_norm_sq": "squared gradient², summed over updates",
    "sum_trace_cov_grad_sq_norm": "squared gradient² × examples, summed over updates",
    "trace_cov": "squared gradient × examples, summed over updates",
    "grad_sq_norm": "squared gradient, summed over updates",
    "sum_loss": "loss, summed over updates",
    "lr": "learning rate",
    "sum_update_sq_norm": "squared parameters, summed over updates",
    "path_sq_distance": "squared parameters",
    "sum_promised_fall": "loss, summed over updates",
    "promised_fall_variance": "loss², summed over updates",
    "value": "as logged",
    "usd_per_device_hour": "USD per device and hour",
    "bucket": "32^level optimizer steps",
    "noise_scale_value": "examples",
    "batch_size": "examples",
}
"""Of columns whose name does not say it."""

BY_SWEEP = frozenset({"sweep_run", "calibration"})
ADDED_LATER = frozenset({"project_baseline", "run_comment"})


# The Parquet files of a project: one a table, with units, the release and the schema's version in their metadata.


class FolderError(RuntimeError):
    """A folder cannot be written or read; says why, and the way out."""


def arrow_type(kind: TypeEngine[Any]) -> pa.DataType:
    """The Arrow type of a column; ids and JSON are text."""
    if isinstance(kind, ARRAY):
        return pa.list_(arrow_type(kind.item_type))
    if isinstance(kind, Uuid | JSONB | Text):
        return pa.string()
    if isinstance(kind, DateTime):
        return pa.timestamp("us", tz="UTC")
    known = ((BigInteger, pa.int64()), (Double, pa.float64()), (Boolean, pa.bool_()))
    return next(arrow for sql, arrow in known if isinstance(kind, sql))


def schema_of(table: str, project: str, revision: str) -> pa.Schema:
    """Of the file of a table."""
    return pa.schema(
        [_field(column) for column in table_of(table).columns],
        metadata={
            "noisescale.format": str(FORMAT),
            "noisescale.version": version("noisescale-server"),
            "noisescale.schema": revision,
            "noisescale.table": table,
            "noisescale.project": project,
        },
    )


def _field(column: Column[Any]) -> pa.Field:
    unit = UNITS.get(column.name)
    return pa.field(
        column.name,
        arrow_type(column.type),
        nullable=bool(column.nullable),
        metadata={"sql": str(column.type), **({} if unit is None else {"unit": unit})},
    )


class TableWriter:
    """One file that grows by parts; a row group is written whenever these are 16 MiB."""

    def __init__(self, folder: Path, table: str, schema: pa.Schema) -> None:
        self.num_rows = 0
        self._schema = schema
        self._texts = [isinstance(column.type, Uuid) for column in table_of(table).columns]
        self._waiting: list[pa.RecordBatch] = []
        self._writer = pq.ParquetWriter(folder / f"{table}.parquet", schema, compression="zstd")  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        """The writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write what waits, and end the file."""
        if kind is None:
            self._flush()
        self._writer.close()  # type: ignore[no-untyped-call]

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows of the table's columns, as the database gives them."""
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array([one if one is None else str(one) for one in column] if is_id else list(column), field.type)
            for column, is_id, field in zip(columns, self._texts, self._schema, strict=True)
        ]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self.num_rows += len(rows)
        if sum(batch.nbytes for batch in self._waiting) >= BYTES_OF_A_ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))  # type: ignore[no-untyped-call]
            self._waiting = []


class TableReader:
    """One file, read part by part.

    Raises:
        FolderError: Where it is missing, no file of ours, of a later format, or has columns that nobody knows.
    """

    def __init__(self, folder: Path, table: str) -> None:
        path = folder / f"{table}.parquet"
        if not path.is_file():
            raise FolderError(f"{path} is missing: name a folder that `noisescale export` wrote")
        try:
            self._file = pq.ParquetFile(path)  # type: ignore[no-untyped-call]
        except (pa.ArrowInvalid, OSError) as error:
            raise FolderError(f"{path} is no Parquet file: {error}") from error
        said = {key.decode(): value.decode() for key, value in (self._file.schema_arrow.metadata or {}).items()}
        if said.get("noisescale.table") != table:
            raise FolderError(f"{path} holds no table {table} of noisescale")
        if said["noisescale.format"] != str(FORMAT):
            raise FolderError(f"{path} is of format {said['noisescale.format']}, and this release reads {FORMAT}")
        self.project = said["noisescale.project"]
        self.columns = tuple(self._file.schema_arrow.names)
        types = {column.name: column.type for column in table_of(table).columns}
        unknown = [name for name in self.columns if name not in types]
        if unknown:
            raise FolderError(
                f"{path} has columns that this release does not know ({', '.join(unknown)}): it was written by "
                f"{said['noisescale.version']}; take a server as new"
            )
        self._ids = [isinstance(types[name], Uuid) for name in self.columns]
        self.num_rows: int = self._file.metadata.num_rows

    def parts(self) -> Iterator[list[list[Any]]]:
        """The rows as the database takes them, some at a time."""
        for batch in self._file.iter_batches(batch_size=ROWS_READ_AT_ONCE):  # type: ignore[no-untyped-call]
            columns = [
                [one if one is None else UUID(one) for one in column.to_pylist()] if is_id else column.to_pylist()
                for column, is_id in zip(batch.columns, self._ids, strict=True)
            ]
            yield [list(row) for row in zip(*columns, strict=True)]


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
