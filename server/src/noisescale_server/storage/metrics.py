"""Metrics: evaluation loss, accuracy, score."""

from bisect import bisect_left
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.driver import fetch

_STORE = """
INSERT INTO metric (run_id, stream_id, seq, step, wall_time, name, value)
SELECT $1::uuid, $2::uuid, given.*
FROM unnest($3::bigint[], $4::bigint[], $5::float8[], $6::text[], $7::float8[])
  AS given(seq, step, wall_time, name, value)
ORDER BY seq, name
"""


@dataclass(frozen=True, slots=True)
class MetricColumns:
    """Values of one batch as columns of equal length; a `seq` may repeat."""

    seq: list[int]
    step: list[int]
    wall_time: list[float]
    name: list[str]
    value: list[float | None]

    def __len__(self) -> int:
        return len(self.seq)

    def since(self, seq: int) -> "MetricColumns":
        """The values from record `seq` on."""
        first = bisect_left(self.seq, seq)
        return MetricColumns(*(getattr(self, name)[first:] for name in MetricColumns.__slots__))


async def store(session: AsyncSession, *, run_id: UUID, stream_id: UUID, columns: MetricColumns) -> None:
    """Nothing; the values are inserted in the order of their key."""
    parameters = (run_id, stream_id, columns.seq, columns.step, columns.wall_time, columns.name, columns.value)
    await fetch(session, _STORE, *parameters)
