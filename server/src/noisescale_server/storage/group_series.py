"""Reads group records as points per layer: a block is one record."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.driver import fetch
from noisescale_server.storage.series import Piece, PointColumns

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


# A layer's place is where its first record has it: records of more than 256 layers come in parts, one after the other.
_POINTS = """
WITH piece AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS piece(stream_id, low, high)
),
record AS (
  SELECT g.* FROM piece CROSS JOIN LATERAL (
    SELECT * FROM group_measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high OFFSET 0
  ) AS g
),
layer AS (
  SELECT r.step, r.seq, r.wall_time, l.position, l.name,
    CASE WHEN l.x IS NULL THEN 0 ELSE l.n END AS n, coalesce(l.x, 0) AS x, coalesce(l.y, 0) AS y,
    coalesce(l.xx, 0) AS xx, coalesce(l.yy, 0) AS yy, coalesce(l.xy, 0) AS xy
  FROM record r CROSS JOIN LATERAL unnest(
    r.names, r.num_updates,
    r.sum_trace_cov, r.sum_grad_sq_norm, r.sum_trace_cov_sq, r.sum_grad_sq_norm_sq, r.sum_trace_cov_grad_sq_norm
  ) WITH ORDINALITY AS l(name, n, x, y, xx, yy, xy, position)
  WHERE $6::text IS NULL OR l.name = $6::text
)
SELECT name, min(ARRAY[step, seq, position]) AS place, sum(xx), sum(yy), sum(xy),
  step / $5::bigint AS point, count(*) FILTER (WHERE n > 0), sum(n::float8), sum(x), sum(y),
  sum(x * x), sum(y * y), sum(x * y), sum(n * x), sum(n * y), sum(n::float8 * n),
  min(x / nullif(n, 0)), max(x / nullif(n, 0)), min(y / nullif(n, 0)), max(y / nullif(n, 0)),
  0::float8, 0, NULL, NULL, 0::float8, 0, NULL, NULL, 0, max(step), NULL, NULL, max(wall_time)
FROM layer GROUP BY name, point ORDER BY name, point
"""


async def points(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], *, steps_per_point: int, name: str | None = None
) -> list[LayerPoints]:
    """The points of every layer, or of one, in network order; pieces are of rows (level 0)."""
    parameters = (
        run_id,
        [piece.stream_id for piece in pieces],
        [piece.low for piece in pieces],
        [piece.high for piece in pieces],
        steps_per_point,
        name,
    )
    rows = await fetch(session, _POINTS, *parameters)
    layers = [list(of_layer) for _, of_layer in groupby(rows, key=itemgetter(0))]
    layers.sort(key=lambda of_layer: min(row[1] for row in of_layer))
    return [
        LayerPoints(
            name=of_layer[0][0],
            points=PointColumns(*zip(*(row[2 + NUM_MOMENTS :] for row in of_layer), strict=True)),
            moments=[(row[2], row[3], row[4]) for row in of_layer],
        )
        for of_layer in layers
    ]
