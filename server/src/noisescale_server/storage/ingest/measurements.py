"""Measurements: stored row by row and folded into the pyramid, in one statement."""

from bisect import bisect_left
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.series import pyramid


@dataclass(frozen=True, slots=True)
class MeasurementColumns:
    """Rows of one batch as columns of equal length, in the order of the wire format and of the SQL parameters."""

    seq: list[int]
    step: list[int]
    num_updates: list[int]
    wall_time: list[float]
    examples: list[int | None]
    micro_batch_size: list[float | None]
    num_micro_batches: list[int]
    global_batch: list[float | None]
    sum_trace_cov: list[float | None]
    sum_grad_sq_norm: list[float | None]
    sum_trace_cov_sq: list[float | None]
    sum_grad_sq_norm_sq: list[float | None]
    sum_trace_cov_grad_sq_norm: list[float | None]
    sum_loss: list[float | None]
    num_loss: list[int]
    lr: list[float | None]
    flags: list[int]
    num_path_updates: list[int]
    sum_update_sq_norm: list[float | None]
    update_sq_norm_variance: list[float | None]
    path_sq_distance: list[float | None]
    path_start: list[int | None]
    momentum: list[float | None]
    num_promised_updates: list[int]
    sum_promised_fall: list[float | None]
    promised_fall_variance: list[float | None]

    def __len__(self) -> int:
        return len(self.seq)

    def since(self, seq: int) -> "MeasurementColumns":
        """The rows from record `seq` on."""
        first = bisect_left(self.seq, seq)
        if first == 0:
            return self
        return MeasurementColumns(*(getattr(self, name)[first:] for name in COLUMN_NAMES))


COLUMN_NAMES = tuple(field.name for field in fields(MeasurementColumns))

NO_PATH = {
    "num_path_updates": 0,
    "sum_update_sq_norm": None,
    "update_sq_norm_variance": None,
    "path_sq_distance": None,
    "path_start": None,
    "momentum": None,
    "num_promised_updates": 0,
    "sum_promised_fall": None,
    "promised_fall_variance": None,
}
"""What a row says of the path of the parameters, and of what updates promise, where it says nothing."""

NO_ROWS = MeasurementColumns(*([] for _ in COLUMN_NAMES))

_INTEGER_COLUMNS = {
    "seq", "step", "num_updates", "examples", "num_micro_batches", "num_loss", "flags", "num_path_updates",
    "path_start", "num_promised_updates",
}  # fmt: skip
_NUM_KEYS = 3


_OF_EACH_ROW = frozenset(
    {"seq", "step", "wall_time", "examples", "sum_loss"}
    | {name for name in COLUMN_NAMES if name.startswith(("sum_trace_cov", "sum_grad_sq_norm"))}
)
"""Columns whose values differ from row to row; any other holds one value throughout most batches."""


def _given() -> str:
    """The batch as a table, from one array parameter a column: parsed once, however many rows there are.

    A column of one value comes as an array of that value alone: to encode arrays is most of what a server does with a
    batch.
    """
    arrays, values = [], []
    for number, name in enumerate(COLUMN_NAMES, start=_NUM_KEYS + 1):
        arrays.append(f"${number}::{'bigint' if name in _INTEGER_COLUMNS else 'float8'}[]")
        once = f"CASE WHEN cardinality(${number}) = 1 THEN (${number})[1] ELSE {name} END AS {name}"
        values.append(name if name in _OF_EACH_ROW else once)
    return f"SELECT {', '.join(values)} FROM unnest({', '.join(arrays)}) AS sent({', '.join(COLUMN_NAMES)})"  # noqa: S608


_STORE_AND_FOLD = f"""
WITH given AS MATERIALIZED ({_given()}),
stored AS (
  INSERT INTO measurement (run_id, stream_id, {", ".join(COLUMN_NAMES)})
  SELECT $1::uuid, $2::uuid, given.* FROM given
),
{pyramid.LEVELS_OF_GIVEN}
{pyramid.fold(run_id="$1::uuid", stream_id="$2::uuid", series="$3::text")}
"""  # noqa: S608 - column names of our own, no input


async def store(
    session: AsyncSession, *, run_id: UUID, stream_id: UUID, series: str, columns: MeasurementColumns
) -> None:
    """Insert the rows in the order of their key, and add them to every level of the pyramid."""
    given = ((name, getattr(columns, name)) for name in COLUMN_NAMES)
    sent = [column if name in _OF_EACH_ROW else _once(column) for name, column in given]
    await fetch(session, _STORE_AND_FOLD, run_id, stream_id, series, *sent)


def _once(column: list[Any]) -> list[Any]:
    """A column, or where all of its values are the same the first of them."""
    return column[:1] if column and column.count(column[0]) == len(column) else column
