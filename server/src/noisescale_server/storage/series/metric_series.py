"""Reads metrics as points: the last value of each point, and the extremes."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.series.series import Piece

# from name to name along the index: to group the values of all of them would read all of them
_NAMES = """
WITH RECURSIVE page AS (
  (SELECT name, 1 AS number FROM metric
   WHERE run_id = $1::uuid AND ($4::text IS NULL OR name = $4::text) AND ($2::text IS NULL OR name > $2::text)
   ORDER BY name LIMIT 1)
  UNION ALL
  SELECT next.name, page.number + 1 FROM page CROSS JOIN LATERAL (
    SELECT name FROM metric WHERE run_id = $1::uuid AND name > page.name ORDER BY name LIMIT 1
  ) AS next
  WHERE page.number < $3::bigint AND $4::text IS NULL
)
SELECT name, steps.first, steps.last FROM page CROSS JOIN LATERAL (
  SELECT min(step) AS first, max(step) AS last FROM metric WHERE run_id = $1::uuid AND metric.name = page.name
) AS steps
ORDER BY name
"""

_POINTS = """
WITH piece AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS piece(stream_id, low, high)
),
found AS (
  SELECT m.name, m.step, m.seq, m.value, m.wall_time FROM piece CROSS JOIN LATERAL (
    SELECT * FROM metric
    WHERE run_id = $1::uuid AND stream_id = piece.stream_id AND name = ANY ($6::text[])
      AND step BETWEEN piece.low AND piece.high
    OFFSET 0
  ) AS m
),
point AS (
  SELECT name, min(value) AS lowest, max(value) AS highest, max(ARRAY[step, seq, value, wall_time]) AS last
  FROM found GROUP BY name, step / $5::bigint
)
SELECT name, last[1]::bigint, last[3], lowest, highest, last[4] FROM point ORDER BY name, point.last
"""


async def names(
    session: AsyncSession, run_id: UUID, *, after: str | None, at_most: int, only: str | None
) -> list[tuple[str, int, int]]:
    """(name, first step, last step) of metrics of the run, in order.

    Args:
        session: Where to read.
        run_id: The run.
        after: Names behind this one; None: from the first on.
        at_most: How many.
        only: The one name to look for; None: any.
    """
    found = await fetch(session, _NAMES, run_id, after, at_most, only)
    return [(name, first, last) for name, first, last in found]


async def points(
    session: AsyncSession, run_id: UUID, pieces: Sequence[Piece], chosen: Sequence[str], *, steps_per_point: int
) -> list[tuple[Any, ...]]:
    """(name, step, value, min, max, wall_time) of each point, by name and step; the value is the last of the point."""
    parameters = (
        run_id,
        [piece.stream_id for piece in pieces],
        [piece.low for piece in pieces],
        [piece.high for piece in pieces],
        steps_per_point,
        list(chosen),
    )
    return await fetch(session, _POINTS, *parameters)
