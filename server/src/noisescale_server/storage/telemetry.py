"""What a scrape reads of the database: the newest live runs, how much waits, what each project has stored."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.visibility import projects_of
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.runs.runs import BEHIND

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


# How much each project has stored: runs, records, and its part of the database's size.

MOST_PROJECTS = 200

# Records are counted where they arrive, stream by stream: counting rows would read all of them.
_STORED = """
WITH records AS (
  SELECT run.project_id, sum(stream.num_stored)::bigint AS num FROM stream JOIN run ON run.id = stream.run_id
  GROUP BY run.project_id
), runs AS (
  SELECT project_id, count(*) AS num FROM run GROUP BY project_id
), whole AS (
  SELECT greatest(coalesce(sum(num), 0), 1) AS records FROM records
)
SELECT project.name AS project, coalesce(records.num, 0) AS num_records, coalesce(runs.num, 0) AS num_runs,
  ($3::bigint * coalesce(records.num, 0) / whole.records)::bigint AS num_bytes
FROM project CROSS JOIN whole LEFT JOIN records ON records.project_id = project.id
LEFT JOIN runs ON runs.project_id = project.id
WHERE $1::uuid[] IS NULL OR project.id = ANY($1::uuid[])
ORDER BY num_records DESC, project.name LIMIT $2::bigint"""

_BYTES = """
SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS bytes FROM pg_stat_user_tables
WHERE schemaname = current_schema()"""
# of all nodes; a table of runs is empty at the coordinator
_BYTES_OF_NODES = """
SELECT coalesce(sum(citus_total_relation_size(logicalrelid, fail_on_error => false)), 0)::bigint AS bytes
FROM pg_dist_partition"""

_DATABASE = "SELECT current_setting('server_version') AS version"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a project has stored.

    Attributes:
        project: Its name.
        num_runs: Archived ones too.
        num_records: That its jobs have sent.
        num_bytes: Of the database, in proportion to the records.
    """

    project: str
    num_runs: int
    num_records: int
    num_bytes: int


async def by_project(session: AsyncSession) -> list[Stored]:
    """The projects that the session sees, those with most records first; 200 at most.

    Args:
        session: Sees the projects that count.
    """
    measure = _BYTES_OF_NODES if await placement.is_distributed(session) else _BYTES
    num_bytes = (await read(session, measure))[0]["bytes"]
    rows = await read(session, _STORED, projects_of(session), MOST_PROJECTS, num_bytes)
    return [Stored(**dict(row)) for row in rows]


async def database_version(session: AsyncSession) -> str:
    """Which PostgreSQL answers, as it calls itself.

    Args:
        session: Any.
    """
    (row,) = await read(session, _DATABASE)
    return str(row["version"])
