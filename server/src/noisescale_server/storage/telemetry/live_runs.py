"""The newest live runs, and how much waits to be done: one look at the database for a scrape."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.visibility import projects_of
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.runs.heard import BEHIND

# Archived runs are nobody's to watch. ix_run_unfinished is read from the newest on, or ix_run_heard where few are live:
# how many there are in all would take a look at each of them.
_NEWEST = """
WITH newest AS MATERIALIZED (
  SELECT id FROM run
  WHERE finish_status IS NULL AND NOT archived AND updated_at > $2::timestamptz AND heard_at > $4::timestamptz
    AND ($1::uuid[] IS NULL OR project_id = ANY($1::uuid[]))
  ORDER BY created_at DESC LIMIT $3::bigint
)
SELECT run.id, project.name AS project, task.name AS task, run.name, run.unit, run.example, run.optimizer,
  run.noise_scale_state, run.noise_scale_value, run.noise_scale_low, run.noise_scale_high, run.latest_global_batch,
  run.example_efficiency, run.latest_step, run.updated_at, run.decision, run.decision_batch_size,
  run.decision_probability, run.decision_saving,
  run.loss_broken_since IS NOT NULL OR run.gradients_broken_since IS NOT NULL AS is_broken
FROM newest JOIN run USING (id) JOIN project ON project.id = run.project_id JOIN task ON task.id = run.task_id
ORDER BY run.created_at DESC"""

MOST_COUNTED = 1_000
"""Of what waits: after a new sweep of a large project all its runs do."""

# from two partial indexes
_WAITING = """
SELECT (SELECT count(*) FROM (
    SELECT id FROM run WHERE window_is_stale AND first_step IS NOT NULL LIMIT $1::bigint) AS one) AS windows,
  (SELECT count(*) FROM (
    SELECT id FROM run WHERE decision_is_stale AND first_step IS NOT NULL AND NOT window_is_stale LIMIT $1::bigint
  ) AS two) AS decisions"""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What a scrape says of a run; batches and noise scale in examples, None where nothing is known."""

    id: UUID
    project: str
    task: str
    name: str
    unit: str
    example: str | None
    optimizer: str | None
    noise_scale_state: str | None
    noise_scale_value: float | None
    noise_scale_low: float | None
    noise_scale_high: float | None
    latest_global_batch: float | None
    example_efficiency: float | None
    latest_step: int | None
    updated_at: datetime
    decision: str | None
    decision_batch_size: int | None
    decision_probability: float | None
    decision_saving: float | None
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """Runs whose newest records wait for the server's own work: to be in their window, and to be judged."""

    windows: int
    decisions: int


async def newest(session: AsyncSession, *, heard_after: datetime, limit: int) -> list[LiveRun]:
    """Runs that have not ended and were heard of since, those that started last first.

    Args:
        session: Sees the projects that count.
        heard_after: By the server's clock.
        limit: Most of them.
    """
    rows = await read(session, _NEWEST, projects_of(session), heard_after, limit, heard_after - BEHIND)
    return [LiveRun(**dict(row)) for row in rows]


async def waiting(session: AsyncSession) -> Waiting:
    """How much the server has still to do, in every project; no more than 1,000 of a kind are counted."""
    (row,) = await read(session, _WAITING, MOST_COUNTED)
    return Waiting(row["windows"], row["decisions"])
