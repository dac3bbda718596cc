"""Reads group records as points per layer: a block is one record."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from asyncpg import Record
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.series.group_pyramid import COLUMNS, LAYERS_OF_RECORDS, LOWEST_LEVEL, aggregate
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, TOP_LEVEL
from noisescale_server.storage.series.series import Piece, PointColumns

NUM_MOMENTS = 3


@dataclass(frozen=True, slots=True)
class LayerPoints:
    """The points of one layer, in the order of steps.

    Attributes:
        name: The layer.
        points: As for the whole model; what records do not hold is null.
        moments: For each point Σ over updates of (tr Σ̂)², (|G|²^)² and their product.
    """

    name: str
    points: PointColumns
    moments: list[tuple[float, float, float]]


_OF_RECORD = ", ".join(f"{expression} AS {name}" for name, expression in COLUMNS.items())
_OF_BUCKET = ", ".join(f"b.{name}" for name in COLUMNS)

# Names are read off the top of the pyramid, where they are few: the buckets of each are then neighbours in the index.
# A layer's place is where its first record has it: records of more than 256 layers come in parts, one after the other.
_POINTS = f"""
WITH piece AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::bigint[]) AS piece(stream_id, level, low, high)
),
record AS (
  SELECT g.* FROM piece CROSS JOIN LATERAL (
    SELECT * FROM group_measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high OFFSET 0
  ) AS g
  WHERE piece.level = 0
),
layer AS ({LAYERS_OF_RECORDS}
  WHERE $7::text[] IS NULL OR l.name = ANY ($7::text[])
),
part AS (
  SELECT name, step / $6::bigint AS point, {_OF_RECORD} FROM layer
  UNION ALL
  SELECT b.name, (b.bucket << ({BITS_PER_LEVEL} * piece.level)) / $6::bigint, {_OF_BUCKET}
  FROM piece CROSS JOIN LATERAL (
    SELECT DISTINCT name FROM group_rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND level = {TOP_LEVEL}
      AND ($7::text[] IS NULL OR name = ANY ($7::text[]))
  ) AS known CROSS JOIN LATERAL (
    SELECT * FROM group_rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND level = piece.level AND name = known.name
      AND bucket BETWEEN piece.low AND piece.high OFFSET 0
  ) AS b
  WHERE piece.level >= {LOWEST_LEVEL}
),
found AS (
  SELECT name, point, {", ".join(aggregate(name, name) for name in COLUMNS)} FROM part GROUP BY name, point
),
ordered AS (SELECT name, min(place) AS first_place FROM found GROUP BY name),
page AS (
  SELECT * FROM ordered
  WHERE $8::text IS NULL OR (first_place, name) >= (SELECT first_place, name FROM ordered WHERE name = $8::text)
  ORDER BY first_place, name LIMIT $9::bigint
)
SELECT name, place, sum_trace_cov_sq, sum_grad_sq_norm_sq, sum_trace_cov_grad_sq_norm, point,
  num_blocks, num_updates::float8, trace_cov, grad_sq_norm, trace_cov_sq, grad_sq_norm_sq, trace_cov_grad_sq_norm,
  weighted_trace_cov, weighted_grad_sq_norm, num_updates_sq,
  trace_cov_min, trace_cov_max, grad_sq_norm_min, grad_sq_norm_max,
  0::float8, 0, NULL, NULL, 0::float8, 0, NULL, NULL, 0, step_last, NULL, NULL, wall_time_last
FROM page JOIN found USING (name) ORDER BY first_place, name, point
"""  # noqa: S608 - names of our own


async def points(
    session: AsyncSession,
    run_id: UUID,
    pieces: Sequence[Piece],
    *,
    steps_per_point: int,
    names: Sequence[str] | None = None,
    since: str | None = None,
    at_most: int | None = None,
) -> list[LayerPoints]:
    """The points of layers, in network order.

    Args:
        session: Of the database.
        run_id: The run.
        pieces: Of rows (level 0) and of buckets from level 2 on, none of which is longer than a point.
        steps_per_point: Length of a point.
        names: Of the layers; None: of all.
        since: From this layer on; none at all where no record of the pieces names it. None: from the first on.
        at_most: How many layers; None: all.
    """
    chosen = (None if names is None else list(names), since, at_most)
    rows = await read(session, _POINTS, *_parameters(run_id, pieces), steps_per_point, *chosen)
    return [_layer_points(list(of_layer)) for _, of_layer in groupby(rows, key=itemgetter(0))]


def _layer_points(rows: Sequence[Record]) -> LayerPoints:
    return LayerPoints(
        name=rows[0][0],
        points=PointColumns(*zip(*(row[2 + NUM_MOMENTS :] for row in rows), strict=True)),
        moments=[(row[2], row[3], row[4]) for row in rows],
    )


def _parameters(run_id: UUID, pieces: Sequence[Piece]) -> tuple[object, ...]:
    """The pieces as columns."""
    return (
        run_id,
        [piece.stream_id for piece in pieces],
        [piece.level for piece in pieces],
        [piece.low for piece in pieces],
        [piece.high for piece in pieces],
    )
