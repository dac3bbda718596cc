"""What is owed to receivers: claimed by one server at a time, for as long as an attempt may take."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch, read

# SKIP LOCKED: servers take different ones, and what is locked is leased in the same transaction. The lease is kept
# outside of any transaction, so that none is open while a receiver takes its time; one that a dead server held is due
# again when it ends. A few of each receiver: one that hangs keeps nobody else's waiting. The conditions stand twice;
# the second ones are looked at again under the lock.
_DUE = "state = 'waiting' AND due_at <= $1::timestamptz AND (leased_until IS NULL OR leased_until <= $1::timestamptz)"
_CLAIM = f"""
WITH ranked AS (
  SELECT event_id, receiver_id, row_number() OVER (PARTITION BY receiver_id ORDER BY due_at, event_id) AS place
  FROM alert_delivery WHERE {_DUE}
)
SELECT one.event_id, one.receiver_id, one.num_attempts + 1 AS num_attempts, one.created_at,
  receiver.shape, receiver.url, receiver.email_to,
  event.kind, event.rule_name, event.run_id, event.run_name, event.sentence, event.happened_at,
  project.name AS project
FROM alert_delivery AS one JOIN ranked USING (event_id, receiver_id)
JOIN alert_event AS event ON event.id = one.event_id JOIN project ON project.id = event.project_id
LEFT JOIN alert_receiver AS receiver ON receiver.id = one.receiver_id
WHERE ranked.place <= $3::bigint AND {_DUE} ORDER BY one.due_at LIMIT $2::bigint FOR UPDATE OF one SKIP LOCKED
"""  # noqa: S608  # conditions from above
_LEASE = """
UPDATE alert_delivery AS one SET leased_until = $3::timestamptz, num_attempts = one.num_attempts + 1
FROM unnest($1::uuid[], $2::uuid[]) AS claimed(event_id, receiver_id)
WHERE one.event_id = claimed.event_id AND one.receiver_id = claimed.receiver_id"""

_SETTLE = """
UPDATE alert_delivery SET state = $4::text, answer = $5::text, due_at = $6::timestamptz, leased_until = NULL,
  done_at = CASE WHEN $4::text = 'waiting' THEN NULL ELSE $7::timestamptz END
WHERE event_id = $1::uuid AND receiver_id = $2::uuid AND state = 'waiting' AND num_attempts = $3::bigint"""

AT_ONCE_EACH = 10
"""Deliveries of one receiver that are under way at a time."""

_OWE = """
INSERT INTO alert_delivery (event_id, receiver_id, receiver_name, due_at, created_at)
SELECT $1::uuid, id, name, $3::timestamptz, $3::timestamptz FROM alert_receiver
WHERE project_id = $2::uuid AND ($4::uuid IS NULL OR id = $4::uuid)
ON CONFLICT DO NOTHING"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this server works on, with what it takes; url and shape are None where the receiver is gone."""

    event_id: UUID
    receiver_id: UUID
    num_attempts: int
    created_at: datetime
    shape: str | None
    url: str | None
    email_to: str | None
    kind: str | None
    rule_name: str
    run_id: UUID | None
    run_name: str | None
    sentence: str
    happened_at: datetime
    project: str


async def owe(
    session: AsyncSession, event_id: UUID, project_id: UUID, *, now: datetime, receiver_id: UUID | None = None
) -> None:
    """Owe the event to every receiver of the project, or to one of them; in the transaction that writes the event."""
    await fetch(session, _OWE, event_id, project_id, now, receiver_id)


async def claim(session: AsyncSession, *, now: datetime, until: datetime, limit: int) -> Sequence[Claimed]:
    """Deliveries that are due, for this server alone until then."""
    found = [Claimed(**dict(row)) for row in await read(session, _CLAIM, now, limit, AT_ONCE_EACH)]
    if found:
        keys = ([one.event_id for one in found], [one.receiver_id for one in found])
        await fetch(session, _LEASE, *keys, until)
    return found


async def settle(
    session: AsyncSession, one: Claimed, *, state: str, answer: str, due_at: datetime, now: datetime
) -> None:
    """Write down what an attempt came to; not if the lease had ended and another server has tried since."""
    await fetch(session, _SETTLE, one.event_id, one.receiver_id, one.num_attempts, state, answer, due_at, now)
