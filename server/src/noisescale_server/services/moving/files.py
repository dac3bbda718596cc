"""The Parquet files of a project: one a table, with units, the release and the schema's version in their metadata."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Double, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from noisescale_server.storage.moving import table_of

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
    "value": "as logged",
    "usd_per_device_hour": "USD per device and hour",
    "bucket": "32^level optimizer steps",
    "noise_scale_value": "examples",
    "batch_size": "examples",
}
"""Of columns whose name does not say it."""


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
