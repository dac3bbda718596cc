"""Metrics: evaluation loss, accuracy, score."""

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch

_STORE = """
INSERT INTO metric (run_id, stream_id, seq, step, wall_time, name, value)
SELECT $1::uuid, $2::uuid, given.*
FROM unnest($3::bigint[], $4::bigint[], $5::float8[], $6::text[], $7::float8[])
  AS given(seq, step, wall_time, name, value)
ORDER BY seq, name
"""

_NEW_NAMES = """
SELECT given.name FROM unnest($2::text[]) AS given(name)
WHERE NOT EXISTS (SELECT FROM metric WHERE run_id = $1::uuid AND metric.name = given.name)
"""

# from name to name along the index: to count the values of each would read all of them
_COUNT_NAMES = """
WITH RECURSIVE known AS (
  (SELECT name, 1 AS number FROM metric WHERE run_id = $1::uuid ORDER BY name LIMIT 1)
  UNION ALL
  SELECT next.name, known.number + 1 FROM known CROSS JOIN LATERAL (
    SELECT name FROM metric WHERE run_id = $1::uuid AND name > known.name ORDER BY name LIMIT 1
  ) AS next
  WHERE known.number < $2::bigint
)
SELECT count(*) FROM known
"""


@dataclass(frozen=True, slots=True)
class MetricBatch:
    """Values of one batch as columns of equal length; a `seq` may repeat."""

    seq: list[int]
    step: list[int]
    wall_time: list[float]
    name: list[str]
    value: list[float | None]

    def __len__(self) -> int:
        return len(self.seq)

    def since(self, seq: int) -> "MetricBatch":
        """The values from record `seq` on."""
        first = bisect_left(self.seq, seq)
        return MetricBatch(*(getattr(self, name)[first:] for name in MetricBatch.__slots__))

    def without(self, seqs: Container[int]) -> "MetricBatch | None":
        """The values of all other records; None where there are none."""
        kept = [row for row, seq in enumerate(self.seq) if seq not in seqs]
        columns = ([getattr(self, name)[row] for row in kept] for name in MetricBatch.__slots__)
        return MetricBatch(*columns) if kept else None


async def new_names(session: AsyncSession, run_id: UUID, names: Sequence[str]) -> set[str]:
    """Those of the names by which the run has no value yet."""
    return {row[0] for row in await fetch(session, _NEW_NAMES, run_id, list(names))}


async def count_names(session: AsyncSession, run_id: UUID, *, at_most: int) -> int:
    """How many names the run's metrics have; beyond `at_most` nobody counts."""
    return int((await fetch(session, _COUNT_NAMES, run_id, at_most))[0][0])


async def store(session: AsyncSession, *, run_id: UUID, stream_id: UUID, columns: MetricBatch) -> None:
    """Insert the values in the order of their key."""
    parameters = (run_id, stream_id, columns.seq, columns.step, columns.wall_time, columns.name, columns.value)
    await fetch(session, _STORE, *parameters)
