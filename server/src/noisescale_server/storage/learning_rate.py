"""Reads what rows and buckets say of the path of the parameters, as points in the order of steps."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, LAST_OF_BUCKETS_PATH, OF_ROW
from noisescale_server.storage.series.series import PIECES, Piece, parameters_of


class PathPoint(NamedTuple):
    """What the steps of a point say.

    Attributes:
        step: The last one.
        learning_rate: At that step; None where none was logged.
        num_updates: Updates of the path that are in the sums.
        sum_sq_norm: Σ |u|² over them.
        variance: Of that sum.
        path_step: The last step that knows a distance; None where none does, as the three that follow.
        sq_distance: |θ - θ_0|² there.
        start: Step whose update was the first since θ_0.
        momentum: Of the optimizer there.
        num_promised: Updates whose promise is in the sums.
        promised: -Σ u · G over them.
        promised_variance: Of that sum.
        num_loss: Losses that were logged.
        total_loss: Σ of them.
    """

    step: int
    learning_rate: float | None
    num_updates: float
    sum_sq_norm: float
    variance: float
    path_step: int | None
    sq_distance: float | None
    start: int | None
    momentum: float | None
    num_promised: float
    promised: float
    promised_variance: float
    num_loss: float
    total_loss: float


_ADDED = (
    "num_path_updates", "sum_update_sq_norm", "update_sq_norm_variance", "num_promised_updates", "sum_promised_fall",
    "promised_fall_variance", "num_loss", "sum_loss",
)  # fmt: skip
_COUNTED = ", ".join(_ADDED)
_SUMS = ", ".join(f"sum({name}::float8) AS {name}" for name in _ADDED)
_OF_ROW = ", ".join(f"{OF_ROW[name]} AS {name}" for name in (*_ADDED, "last_of_path"))

_POINTS = f"""
WITH {PIECES}
SELECT last[1]::bigint, last[2], num_path_updates, sum_update_sq_norm, update_sq_norm_variance,
  last_of_path[1]::bigint, last_of_path[3], last_of_path[4]::bigint, last_of_path[5],
  num_promised_updates, sum_promised_fall, promised_fall_variance, num_loss, sum_loss
FROM (
  SELECT first_step / $6::bigint AS point, max(ARRAY[step, lr]) AS last,
    {_SUMS}, max(last_of_path) AS last_of_path
  FROM (
    SELECT r.bucket << ({BITS_PER_LEVEL} * piece.level) AS first_step, r.step_last AS step, r.lr_last AS lr,
      {_COUNTED}, {LAST_OF_BUCKETS_PATH} AS last_of_path
    FROM piece CROSS JOIN LATERAL (
      SELECT * FROM rollup
      WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = $7::text AND level = piece.level
        AND bucket BETWEEN piece.low AND piece.high OFFSET 0
    ) AS r
    WHERE piece.level > 0
    UNION ALL
    SELECT m.step, m.step, m.lr, {_OF_ROW}
    FROM piece CROSS JOIN LATERAL (
      SELECT * FROM measurement
      WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high OFFSET 0
    ) AS m
    WHERE piece.level = 0
  ) AS part
  GROUP BY point
) AS found
ORDER BY point
"""  # noqa: S608 - column names of our own


async def points(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], *, steps_per_point: int
) -> list[PathPoint]:
    """Points of so many steps, as far as there are rows.

    Args:
        session: Where to read.
        run_id: The run.
        pieces: Of streams of kind simple; no bucket reaches over the end of a point.
        steps_per_point: Counted from step 0.
    """
    if not pieces:
        return []
    rows = await read(session, _POINTS, *parameters_of(run_id, pieces), steps_per_point, SIMPLE)
    return [PathPoint(*row) for row in rows]


class LastOfPath(NamedTuple):
    """What the newest row that knows a path says.

    Attributes:
        start: Step whose update was the first since θ_0.
        momentum: Of the optimizer there.
    """

    start: int
    momentum: float


_LAST_OF_PATH = f"""
WITH {PIECES}
SELECT path_start, momentum FROM (
  SELECT m.* FROM piece CROSS JOIN LATERAL (
    SELECT step, path_start, momentum FROM measurement
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND step BETWEEN piece.low AND piece.high
      AND path_sq_distance IS NOT NULL
    ORDER BY step DESC LIMIT 1
  ) AS m
  WHERE piece.level = 0
  UNION ALL
  SELECT r.* FROM piece CROSS JOIN LATERAL (
    SELECT path_step_last, path_start_last, momentum_last FROM rollup
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND series = '{SIMPLE}' AND level = piece.level
      AND bucket BETWEEN piece.low AND piece.high AND path_step_last IS NOT NULL
    ORDER BY bucket DESC LIMIT 1
  ) AS r
  WHERE piece.level > 0
) AS found
ORDER BY step DESC LIMIT 1
"""  # noqa: S608 - a table expression of our own


async def last_of_path(session: AsyncSession, run_id: UUID, pieces: Sequence[Piece]) -> LastOfPath | None:
    """What the newest row that knows a path says; None where none does.

    Args:
        session: Where to read.
        run_id: The run.
        pieces: Of streams of kind simple, of any level.
    """
    rows = await read(session, _LAST_OF_PATH, *parameters_of(run_id, pieces))
    return LastOfPath(*rows[0]) if rows else None
