"""Reads what pieces of the pyramid say beside their points: evidence of a gradient, looks, last steps and sizes."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.signal import Evidence
from noisescale_server.storage.platform.driver import read_by_key
from noisescale_server.storage.runs.streams import SIMPLE, Kind
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL
from noisescale_server.storage.series.series import PIECES, Piece, parameters_of

_EVIDENCE = f"""
WITH {PIECES}
SELECT first_step, sum(num_estimates::float8), sum(grad_sq_norm), sum(grad_sq_norm_sq)
FROM (
  SELECT piece.low << ({BITS_PER_LEVEL} * piece.level) AS first_step,
    r.num_estimates, r.sum_grad_sq_norm AS grad_sq_norm, r.sum_grad_sq_norm_sq AS grad_sq_norm_sq
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = $6::text AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high OFFSET 0
  ) AS r
  WHERE piece.level > 0
  UNION ALL
  SELECT piece.low, m.num_updates, m.sum_grad_sq_norm, m.sum_grad_sq_norm_sq
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high
      AND sum_grad_sq_norm IS NOT NULL OFFSET 0
  ) AS m
  WHERE piece.level = 0
) AS part
GROUP BY first_step ORDER BY first_step
"""  # noqa: S608 - a table expression of our own


async def evidence(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], *, kind: Kind = SIMPLE
) -> list[tuple[int, Evidence]]:
    """The sums over all updates of each piece that holds any, with its first step, in their order.

    The pieces are of streams of `kind`.
    """
    rows = await read_by_key(session, _EVIDENCE, *parameters_of(run_id, pieces), kind)
    return [(first_step, Evidence(*sums)) for first_step, *sums in rows]


_LOOKS = """
WITH piece AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::bigint[], $6::int[])
    AS piece(stream_id, level, low, high, look)
)
SELECT look, sum(num_estimates::float8), sum(x), sum(y), sum(xx), sum(yy), sum(xy), sum(examples),
  sum(num_batches::float8), (max(ARRAY[step, lr]))[2]
FROM (
  SELECT piece.look, r.num_estimates, r.sum_trace_cov AS x, r.sum_grad_sq_norm AS y, r.sum_trace_cov_sq AS xx,
    r.sum_grad_sq_norm_sq AS yy, r.sum_trace_cov_grad_sq_norm AS xy, r.sum_global_batch AS examples,
    r.num_global_batch AS num_batches, r.step_last AS step, r.lr_last AS lr
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = $7::text AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high OFFSET 0
  ) AS r
  WHERE piece.level > 0 AND r.num_estimates > 0
  UNION ALL
  SELECT piece.look, m.num_updates, m.sum_trace_cov, m.sum_grad_sq_norm, m.sum_trace_cov_sq, m.sum_grad_sq_norm_sq,
    m.sum_trace_cov_grad_sq_norm, m.num_updates * m.global_batch, m.num_updates, m.step, m.lr
  FROM piece CROSS JOIN LATERAL (
    SELECT * FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high
      AND sum_trace_cov IS NOT NULL AND global_batch IS NOT NULL OFFSET 0
  ) AS m
  WHERE piece.level = 0
) AS part
GROUP BY look ORDER BY look
"""


async def looks(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], numbers: Sequence[int], *, kind: Kind = SIMPLE
) -> list[tuple[int, Look]]:
    """The number and the sums over all updates of each look that holds any, in their order.

    Args:
        session: Where to read.
        run_id: The run.
        pieces: Of streams of `kind`.
        numbers: Of the look that each piece belongs to.
        kind: Of the noise scale.
    """
    rows = await read_by_key(session, _LOOKS, *parameters_of(run_id, pieces), list(numbers), kind)
    return [(number, Look(*sums)) for number, *sums in rows]


_LAST_ESTIMATED_STEP = f"""
WITH {PIECES}
SELECT max(step) FROM (
  SELECT m.step FROM piece CROSS JOIN LATERAL (
    SELECT step FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high
      AND sum_trace_cov IS NOT NULL
    ORDER BY step DESC LIMIT 1
  ) AS m
  WHERE piece.level = 0
  UNION ALL
  SELECT r.step_last FROM piece CROSS JOIN LATERAL (
    SELECT step_last FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = $6::text AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high AND num_estimates > 0
    ORDER BY bucket DESC LIMIT 1
  ) AS r
  WHERE piece.level > 0
) AS found
"""  # noqa: S608 - a table expression of our own


async def last_estimated_step(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], *, kind: Kind = SIMPLE
) -> int | None:
    """The last step of these rows that has an estimate, or of buckets that have any; None where none has."""
    rows = await read_by_key(session, _LAST_ESTIMATED_STEP, *parameters_of(run_id, pieces), kind)
    return rows[0][0] if rows else None


_LAST_SIZES = f"""
WITH {PIECES}
SELECT global_batch FROM (
  SELECT m.* FROM piece CROSS JOIN LATERAL (
    SELECT step, global_batch FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high
      AND global_batch IS NOT NULL AND NOT (flags & {int(Flags.SMALLER_STEP)} <> 0 AND sum_trace_cov IS NULL)
    ORDER BY step DESC LIMIT $6::bigint
  ) AS m
  WHERE piece.level = 0
  UNION ALL
  SELECT r.* FROM piece CROSS JOIN LATERAL (
    SELECT step_last, global_batch_max FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = '{SIMPLE}' AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high AND global_batch_max IS NOT NULL
    ORDER BY bucket DESC LIMIT $6::bigint
  ) AS r
  WHERE piece.level > 0
) AS found
ORDER BY step DESC LIMIT $6::bigint
"""  # noqa: S608 - a table expression of our own


async def last_sizes(session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], limit: int) -> list[float]:
    """Examples of the last of these rows, oldest first, without those that hold far smaller steps alone.

    Of a bucket, whose rows are folded, the largest stands for all: smaller ones are the rests of epochs.
    """
    rows = await read_by_key(session, _LAST_SIZES, *parameters_of(run_id, pieces), limit)
    return [row[0] for row in reversed(rows)]
