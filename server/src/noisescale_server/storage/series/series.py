"""Reads pieces of the pyramid as points: the statistics of a point's blocks, added up by Postgres.

A *block* is a row (level 0) or a bucket; a *point* is a number of neighbouring blocks. Only points travel.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read_by_key
from noisescale_server.storage.runs.streams import SIMPLE, Kind
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, LAST_OF_BUCKET, OF_ROW, aggregate

ONE_POINT = 1 << 55
"""More blocks than any run has: everything is added up to one point."""


Sums = tuple[float, ...]
"""m, Σn, ΣX, ΣY, ΣX², ΣY², ΣXY, ΣnX, ΣnY, Σn² over blocks, in the order of `WindowSums`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one stream with low <= step <= high (level 0), or its buckets low … high of a level of the pyramid."""

    stream_id: UUID
    level: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Points in the order of steps, as columns.

    The first ten after `point` are the sums that an interval is made of, over blocks of n updates with the sums
    X of tr Σ and Y of |G|²: m, Σn, ΣX, ΣY, ΣX², ΣY², ΣXY, ΣnX, ΣnY, Σn².

    Attributes:
        point: Number of the point: its first step // steps per point.
        step_last: Step of the last row; `lr_last`, `examples_last`, `wall_time_last` are of this row too.
    """

    point: Sequence[int] = ()
    num_blocks: Sequence[int] = ()
    num_updates: Sequence[float] = ()
    trace_cov: Sequence[float] = ()
    grad_sq_norm: Sequence[float] = ()
    trace_cov_sq: Sequence[float] = ()
    grad_sq_norm_sq: Sequence[float] = ()
    cross: Sequence[float] = ()
    weighted_trace_cov: Sequence[float] = ()
    weighted_grad_sq_norm: Sequence[float] = ()
    num_updates_sq: Sequence[float] = ()
    trace_cov_min: Sequence[float | None] = ()
    trace_cov_max: Sequence[float | None] = ()
    grad_sq_norm_min: Sequence[float | None] = ()
    grad_sq_norm_max: Sequence[float | None] = ()
    sum_loss: Sequence[float] = ()
    num_loss: Sequence[int] = ()
    loss_min: Sequence[float | None] = ()
    loss_max: Sequence[float | None] = ()
    sum_global_batch: Sequence[float] = ()
    num_global_batch: Sequence[int] = ()
    global_batch_min: Sequence[float | None] = ()
    global_batch_max: Sequence[float | None] = ()
    flags: Sequence[int] = ()
    step_last: Sequence[int] = ()
    lr_last: Sequence[float | None] = ()
    examples_last: Sequence[int | None] = ()
    wall_time_last: Sequence[float | None] = ()

    def __len__(self) -> int:
        return len(self.point)

    def since(self, position: int) -> "PointColumns":
        """The points from this position on."""
        return PointColumns(*(getattr(self, name)[position:] for name in PointColumns.__slots__)) if position else self

    def block_sums(self) -> Iterable[Sums]:
        """The ten sums, point by point."""
        return zip(*(getattr(self, name) for name in SUM_COLUMNS), strict=True)


class Block(NamedTuple):
    """Neighbouring updates, as one block.

    Attributes:
        number: Its first step // steps per block.
        num_updates: Updates that hold an estimate.
        trace_cov: Σ tr Σ^ over them.
        grad_sq_norm: Σ |G|²^ over them.
        flags: All bits that the rows carry.
    """

    number: int
    num_updates: float
    trace_cov: float
    grad_sq_norm: float
    flags: int


_SUMS_OVER_BLOCKS = """
  count(*) FILTER (WHERE num_estimates > 0) AS num_blocks,
  sum(num_estimates::float8) AS num_updates,
  sum(sum_trace_cov) AS trace_cov,
  sum(sum_grad_sq_norm) AS grad_sq_norm,
  sum(sum_trace_cov * sum_trace_cov) AS trace_cov_sq,
  sum(sum_grad_sq_norm * sum_grad_sq_norm) AS grad_sq_norm_sq,
  sum(sum_trace_cov * sum_grad_sq_norm) AS cross,
  sum(num_estimates * sum_trace_cov) AS weighted_trace_cov,
  sum(num_estimates * sum_grad_sq_norm) AS weighted_grad_sq_norm,
  sum(num_estimates::float8 * num_estimates) AS num_updates_sq"""

_OWN_COLUMNS = (
    "trace_cov_min",
    "trace_cov_max",
    "grad_sq_norm_min",
    "grad_sq_norm_max",
    "sum_loss",
    "num_loss",
    "loss_min",
    "loss_max",
    "sum_global_batch",
    "num_global_batch",
    "global_batch_min",
    "global_batch_max",
    "flags",
    "last",
)
SUM_COLUMNS = (
    "num_blocks",
    "num_updates",
    "trace_cov",
    "grad_sq_norm",
    "trace_cov_sq",
    "grad_sq_norm_sq",
    "cross",
    "weighted_trace_cov",
    "weighted_grad_sq_norm",
    "num_updates_sq",
)
_OWN_COLUMNS_SPENT = ("sum_global_batch", "num_global_batch", "flags", "last")
"""What a history needs of them, which shows neither losses nor extremes: each column costs Postgres some time a row."""
_BLOCK_SUMS = ("num_estimates", "sum_trace_cov", "sum_grad_sq_norm")

PIECES = (
    "piece AS MATERIALIZED (SELECT * FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::bigint[])"
    " AS piece(stream_id, level, low, high))"
)
"""Of a statement: the pieces that it reads, $2 to $5; $1 is the run."""


def _own(name: str) -> str:
    return aggregate(name, name)


# OFFSET 0 keeps the planner from turning the loop over pieces into a join that reads whole streams.
def _rows(columns: Sequence[str]) -> str:
    return f"""
  SELECT m.step, {", ".join(f"{OF_ROW[name]} AS {name}" for name in columns)}
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high OFFSET 0
  ) AS m
  WHERE piece.level = 0"""  # noqa: S608 - column names of our own


def _buckets(condition: str, columns: Sequence[str]) -> str:
    """The pieces that are buckets of the kind $8."""
    named = ", ".join(f"{LAST_OF_BUCKET if name == 'last' else name} AS {name}" for name in columns)
    return f"""
  SELECT r.bucket, piece.level, {named}
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = $8::text AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high OFFSET 0
  ) AS r
  WHERE {condition}"""  # noqa: S608


def _edges_and_whole(columns: Sequence[str]) -> str:
    names = ", ".join(columns)
    return f"""
edge_rows AS ({_rows(columns)}),
edge_buckets AS ({_buckets("piece.level BETWEEN 1 AND $7::int - 1", columns)}),
edge AS (
  SELECT step >> ({BITS_PER_LEVEL} * $7::int) AS block, {names} FROM edge_rows
  UNION ALL
  SELECT bucket >> ({BITS_PER_LEVEL} * ($7::int - level)) AS block, {names} FROM edge_buckets
),
whole AS ({_buckets("piece.level = $7::int", columns)}),
block AS (
  SELECT block, {", ".join(map(_own, columns))} FROM edge GROUP BY block
  UNION ALL
  SELECT bucket AS block, {names} FROM whole
)"""  # noqa: S608


def _of_points(shown: Sequence[str], own_columns: Sequence[str], *, of_buckets: bool) -> str:
    """The statement that adds up blocks to points and shows these columns of them."""
    columns = (*_BLOCK_SUMS, *own_columns)
    blocks = _edges_and_whole(columns) if of_buckets else f"block AS ({_rows(columns)})"
    return f"""
WITH {PIECES}, {blocks}
SELECT {", ".join(f"found.{name}" for name in ("point", *shown))}
FROM (
  SELECT {"block.block" if of_buckets else "step"} / $6::bigint AS point,
    {_SUMS_OVER_BLOCKS},
    {", ".join(map(_own, own_columns))}
  FROM block GROUP BY 1
) AS found
ORDER BY point
"""  # noqa: S608


# `last` is taken apart at the very end
_LAST = ("last[1]::bigint", "last[3]", "last[4]::bigint", "last[5]")
_POINTS, _SPENT = ((*SUM_COLUMNS, *own[:-1], *_LAST) for own in (_OWN_COLUMNS, _OWN_COLUMNS_SPENT))
_POINTS_OF_ROWS = _of_points(_POINTS, _OWN_COLUMNS, of_buckets=False)
_POINTS_OF_BUCKETS = _of_points(_POINTS, _OWN_COLUMNS, of_buckets=True)
_SPENT_OF_ROWS = _of_points(_SPENT, _OWN_COLUMNS_SPENT, of_buckets=False)
_SPENT_OF_BUCKETS = _of_points(_SPENT, _OWN_COLUMNS_SPENT, of_buckets=True)
_NAMES_SPENT = (
    "point",
    *SUM_COLUMNS,
    *_OWN_COLUMNS_SPENT[:-1],
    *("step_last", "lr_last", "examples_last", "wall_time_last"),
)
_SUMS_OF_ROWS = _of_points(SUM_COLUMNS, ("flags",), of_buckets=False)
_SUMS_OF_BUCKETS = _of_points(SUM_COLUMNS, ("flags",), of_buckets=True)
_BLOCKS_OF_ROWS = _of_points(Block._fields[1:], ("flags",), of_buckets=False)
_BLOCKS_OF_BUCKETS = _of_points(Block._fields[1:], ("flags",), of_buckets=True)


async def points(
    session: AsyncSession,
    run_id: UUID,
    pieces: Sequence[Piece],
    *,
    level: int,
    blocks_per_point: int,
    kind: Kind = SIMPLE,
) -> PointColumns:
    """Points of `blocks_per_point` blocks of `level`, as far as there are rows; the pieces are of streams of `kind`.

    Pieces below `level` are edges: those within one bucket make one block. A bucket whose piece is of `level` is a
    block by itself.
    """
    statement = _POINTS_OF_BUCKETS if level else _POINTS_OF_ROWS
    rows = await _read_points(session, statement, run_id, pieces, level, blocks_per_point, kind)
    return PointColumns(*zip(*rows, strict=True)) if rows else PointColumns()


async def spent(
    session: AsyncSession,
    run_id: UUID,
    pieces: Sequence[Piece],
    *,
    level: int,
    blocks_per_point: int,
    kind: Kind = SIMPLE,
) -> PointColumns:
    """As `points`, but without losses and extremes, which stay empty."""
    statement = _SPENT_OF_BUCKETS if level else _SPENT_OF_ROWS
    rows = await _read_points(session, statement, run_id, pieces, level, blocks_per_point, kind)
    return PointColumns(**dict(zip(_NAMES_SPENT, zip(*rows, strict=True), strict=True))) if rows else PointColumns()


async def sums(
    session: AsyncSession,
    run_id: UUID,
    pieces: Sequence[Piece],
    *,
    level: int,
    blocks_per_point: int,
    kind: Kind = SIMPLE,
) -> list[tuple[int, Sums]]:
    """As `points`, but only their numbers and the ten sums."""
    statement = _SUMS_OF_BUCKETS if level else _SUMS_OF_ROWS
    rows = await _read_points(session, statement, run_id, pieces, level, blocks_per_point, kind)
    return [(number, tuple(ten)) for number, *ten in rows]


async def blocks(
    session: AsyncSession,
    run_id: UUID,
    pieces: Sequence[Piece],
    *,
    level: int,
    buckets_per_block: int = 1,
    kind: Kind = SIMPLE,
) -> list[Block]:
    """Blocks of neighbouring buckets of `level`, or of rows at level 0."""
    statement = _BLOCKS_OF_BUCKETS if level else _BLOCKS_OF_ROWS
    rows = await _read_points(session, statement, run_id, pieces, level, buckets_per_block, kind)
    return [Block(*row) for row in rows]


async def _read_points(
    session: AsyncSession,
    statement: str,
    run_id: UUID,
    pieces: Sequence[Piece],
    level: int,
    blocks_per_point: int,
    kind: Kind,
) -> list[Record]:
    if not pieces:
        return []
    parameters = (*parameters_of(run_id, pieces), blocks_per_point, *((level, kind) if level else ()))
    return await read_by_key(session, statement, *parameters)


def parameters_of(run_id: UUID, pieces: Sequence[Piece]) -> tuple[object, ...]:
    """$1 to $5 of a statement that begins with `PIECES`."""
    return (
        run_id,
        [piece.stream_id for piece in pieces],
        [piece.level for piece in pieces],
        [piece.low for piece in pieces],
        [piece.high for piece in pieces],
    )
