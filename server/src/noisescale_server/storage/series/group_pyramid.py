"""The pyramid of group records: the sums of a layer over 32², 32³ … 32⁵ steps, so that a long run is read in few rows.

A *block* is one record, as everywhere in group series: a bucket holds the sums over its blocks that intervals are made
of, and nothing about a single one. Level 1 is left out, as records are at least ten steps apart.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, TOP_LEVEL

LOWEST_LEVEL = 2

ADDED = {
    "num_blocks": "(n > 0)::int::bigint",
    "num_updates": "n",
    "trace_cov": "x",
    "grad_sq_norm": "y",
    "trace_cov_sq": "x * x",
    "grad_sq_norm_sq": "y * y",
    "trace_cov_grad_sq_norm": "x * y",
    "weighted_trace_cov": "n * x",
    "weighted_grad_sq_norm": "n * y",
    "num_updates_sq": "n::float8 * n",
    "sum_trace_cov_sq": "xx",
    "sum_grad_sq_norm_sq": "yy",
    "sum_trace_cov_grad_sq_norm": "xy",
}
"""Column → what one record adds to it: n updates with the sums X and Y, and their moments over updates XX, YY, XY."""

MINIMA = {
    "place": "ARRAY[step, seq, position]",
    "trace_cov_min": "x / nullif(n, 0)",
    "grad_sq_norm_min": "y / nullif(n, 0)",
}
MAXIMA = {
    "trace_cov_max": "x / nullif(n, 0)",
    "grad_sq_norm_max": "y / nullif(n, 0)",
    "step_last": "step",
    "wall_time_last": "wall_time",
}
COLUMNS = {**ADDED, **MINIMA, **MAXIMA}
_COUNTS = ("num_blocks", "num_updates")


def aggregate(name: str, expression: str) -> str:
    """The aggregate that adds up one column."""
    if name in ADDED:
        # sum() of bigint is numeric in Postgres
        return f"sum({expression}){'::bigint' if name in _COUNTS else ''} AS {name}"
    return f"{'min' if name in MINIMA else 'max'}({expression}) AS {name}"


LAYERS_OF_RECORDS = """
  SELECT r.run_id, r.stream_id, r.step, r.seq, r.wall_time, l.position, l.name,
    CASE WHEN l.x IS NULL THEN 0 ELSE l.n END AS n, coalesce(l.x, 0) AS x, coalesce(l.y, 0) AS y,
    coalesce(l.xx, 0) AS xx, coalesce(l.yy, 0) AS yy, coalesce(l.xy, 0) AS xy
  FROM record AS r CROSS JOIN LATERAL unnest(
    r.names, r.num_updates,
    r.sum_trace_cov, r.sum_grad_sq_norm, r.sum_trace_cov_sq, r.sum_grad_sq_norm_sq, r.sum_trace_cov_grad_sq_norm
  ) WITH ORDINALITY AS l(name, n, x, y, xx, yy, xy, position)"""
"""A row a layer of each row of a table expression `record`."""


def _merged(name: str) -> str:
    if name in ADDED:
        return f"{name} = group_rollup.{name} + excluded.{name}"
    return f"{name} = {'least' if name in MINIMA else 'greatest'}(group_rollup.{name}, excluded.{name})"


def fold(records: str) -> str:
    """INSERT that adds the group records of a query to the pyramid, ordered by key."""
    names = ", ".join(COLUMNS)
    return f"""
WITH record AS ({records}), layer AS ({LAYERS_OF_RECORDS})
INSERT INTO group_rollup (run_id, stream_id, level, name, bucket, {names})
SELECT run_id, stream_id, level, name, step >> ({BITS_PER_LEVEL} * level) AS bucket,
  {", ".join(aggregate(name, expression) for name, expression in COLUMNS.items())}
FROM layer CROSS JOIN generate_series({LOWEST_LEVEL}, {TOP_LEVEL}) AS level
GROUP BY 1, 2, 3, 4, 5 ORDER BY level, name, bucket
ON CONFLICT (run_id, stream_id, level, name, bucket) DO UPDATE SET {", ".join(map(_merged, COLUMNS))}
"""  # noqa: S608 - names of our own


_FOLD_STORED = fold(
    "SELECT * FROM group_measurement WHERE run_id = $1::uuid AND stream_id = $2::uuid AND seq = ANY ($3::bigint[])"
)


async def add(session: AsyncSession, *, run_id: UUID, stream_id: UUID, seqs: Sequence[int]) -> None:
    """Add stored records of a stream, each given once, to its pyramid."""
    await fetch(session, _FOLD_STORED, run_id, stream_id, list(seqs))
