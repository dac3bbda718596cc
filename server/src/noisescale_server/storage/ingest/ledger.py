"""The ledger of every stream: each record that a job numbered is stored, declared lost, or rejected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.series.pyramid import TOP_LEVEL

REJECTED: Final = "rejected"
"""The reason of a loss that the server caused by refusing a record."""


@dataclass(frozen=True, slots=True)
class StreamAudit:
    """A stream's counters beside what its rows say.

    Attributes:
        run_id: Its run.
        stream_id: The stream.
        num_acked: Records that the job may forget: next_seq - 1.
        num_stored: Counted as stored.
        num_lost: Counted as declared lost.
        num_rejected: Counted as refused.
        num_measurements: Counted rows of measurements.
        found_measurements: Rows of measurements that are there.
        found_records: Records with rows of their own that are there; `run` and `finish` have none.
        found_lost: Records in ranges declared lost.
        found_rejected: Records in ranges refused.
        found_beyond: Rows with a number that is not acknowledged.
        num_folded: Rows of measurements that the pyramid alone holds.
        found_in_pyramid: Rows that its top level is made of.
    """

    run_id: UUID
    stream_id: UUID
    num_acked: int
    num_stored: int
    num_lost: int
    num_rejected: int
    num_measurements: int
    found_measurements: int
    found_records: int
    found_lost: int
    found_rejected: int
    found_beyond: int
    num_folded: int = 0
    found_in_pyramid: int = 0


# One statement, so one snapshot: it holds while jobs send. A record is in one table only; metrics share a number.
_WRONG = f"""
SELECT * FROM (
  SELECT s.run_id, s.id, s.next_seq - 1 AS num_acked, s.num_stored, s.num_lost, s.num_rejected, s.num_measurements,
    m.found AS found_measurements, m.found + k.found + g.found AS found_records,
    l.lost AS found_lost, l.rejected AS found_rejected, m.beyond + k.beyond + g.beyond AS found_beyond,
    s.num_folded, p.found AS found_in_pyramid
  FROM stream s
  CROSS JOIN LATERAL (
    SELECT count(*) AS found, count(*) FILTER (WHERE seq >= s.next_seq) AS beyond
    FROM measurement WHERE run_id = s.run_id AND stream_id = s.id) m
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT seq) AS found, count(*) FILTER (WHERE seq >= s.next_seq) AS beyond
    FROM metric WHERE run_id = s.run_id AND stream_id = s.id) k
  CROSS JOIN LATERAL (
    SELECT count(*) AS found, count(*) FILTER (WHERE seq >= s.next_seq) AS beyond
    FROM group_measurement WHERE run_id = s.run_id AND stream_id = s.id) g
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(num_rows), 0)::bigint AS found
    FROM rollup WHERE run_id = s.run_id AND stream_id = s.id AND series = s.kind AND level = {TOP_LEVEL}) p
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(to_seq - from_seq + 1) FILTER (WHERE reason <> '{REJECTED}'), 0)::bigint AS lost,
      coalesce(sum(to_seq - from_seq + 1) FILTER (WHERE reason = '{REJECTED}'), 0)::bigint AS rejected
    FROM stream_loss WHERE run_id = s.run_id AND stream_id = s.id) l
) ledger
WHERE num_acked <> num_stored + num_lost + num_rejected OR num_measurements <> found_measurements + num_folded
  OR (num_folded > 0 AND num_measurements <> found_in_pyramid)
  OR num_stored < found_records OR num_lost <> found_lost OR num_rejected <> found_rejected OR found_beyond > 0
ORDER BY run_id, id
"""  # noqa: S608 - a constant of ours, no input


async def wrong_streams(session: AsyncSession) -> Sequence[StreamAudit]:
    """Streams whose ledger does not add up, or is not what their rows say; reads every row, however long it takes."""
    await session.execute(text("SET LOCAL statement_timeout = 0"))
    return [StreamAudit(*row) for row in await fetch(session, _WRONG)]


async def num_streams(session: AsyncSession) -> int:
    """How many streams there are."""
    found: int = (await fetch(session, "SELECT count(*) FROM stream"))[0][0]
    return found
