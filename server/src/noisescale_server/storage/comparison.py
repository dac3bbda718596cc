"""What a comparison over tasks starts from: sweeps with the version of their data, and runs with their streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.visibility import projects_of
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.runs.streams import SIMPLE, Coverage


@dataclass(frozen=True, slots=True)
class SweepMark:
    """A sweep, and the version of what is measured from it: another version may give another answer.

    Attributes:
        sweep_id: The sweep.
        project: Name of its project.
        task_id: Its task.
        task: Name of its task.
        family: Of the task.
        optimizer: As the sweep says.
        version: Changes with every run that is attached, replaced or deleted, and with all that a stored one logs.
    """

    sweep_id: UUID
    project: str
    task_id: UUID
    task: str
    family: str | None
    optimizer: str | None
    version: str


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run and the steps that its streams of kind simple cover.

    Attributes:
        run_id: The run.
        created_at: When it was created: a deleted run may come back under its id.
        task_id: Its task.
        optimizer: As it logged.
        units_per_example: Of its unit.
        unit: What people count in.
        coverage: Of its streams that have any step.
    """

    run_id: UUID
    created_at: datetime
    task_id: UUID
    optimizer: str | None
    units_per_example: float
    unit: str
    coverage: tuple[Coverage, ...]


_SWEEPS = """
SELECT sweep.id, project.name, task.id, task.name, task.family, sweep.optimizer, sweep.xmin::text
FROM sweep
JOIN project ON project.id = sweep.project_id
JOIN task ON task.id = sweep.task_id
WHERE sweep.kind = 'sweep' AND ($1::text IS NULL OR project.name = $1) AND ($2::text[] IS NULL OR task.name = ANY ($2))
  AND ($4::uuid[] IS NULL OR project.id = ANY ($4))
ORDER BY sweep.created_at DESC, sweep.id DESC
LIMIT $3
"""

# xmin is the transaction that wrote a row: a curve that is replaced keeps its key and its created_at.
_MARKS = """
SELECT sweep_run.sweep_id, concat_ws(' ', count(*), sum(sweep_run.xmin::text::bigint), count(run.id),
  max(run.updated_at))
FROM sweep_run LEFT JOIN run ON run.id = sweep_run.run_id AND sweep_run.is_stored
WHERE sweep_run.sweep_id = ANY ($1::uuid[])
GROUP BY sweep_run.sweep_id
"""

_RUNS = """
SELECT run.id, run.created_at, run.task_id, run.optimizer, run.units_per_example, run.unit,
  stream.id, stream.started_at, stream.first_step, stream.last_step, stream.num_measurements, stream.num_estimates,
  stream.folded, stream.folded_groups
FROM run JOIN stream ON stream.run_id = run.id
WHERE run.id = ANY ($1::uuid[]) AND stream.kind = $2 AND stream.first_step IS NOT NULL
  AND ($3::uuid[] IS NULL OR run.project_id = ANY ($3))
ORDER BY run.id, stream.started_at, stream.id
"""

_RESOLVED = """
SELECT id, task_id, optimizer FROM (
  SELECT id, task_id, optimizer,
    row_number() OVER (PARTITION BY task_id, optimizer ORDER BY latest_step DESC, id) AS place
  FROM run WHERE task_id = ANY ($1::uuid[]) AND NOT archived AND noise_scale_state = 'resolved' AND NOT EXISTS (
    SELECT FROM sweep_run JOIN calibration USING (sweep_id)
    WHERE sweep_run.run_id = run.id AND calibration.task_id = ANY ($1::uuid[]) AND is_stored AND tuned <> '[]'
      AND NOT tuned @> jsonb_build_array(jsonb_build_object('batch_size', sweep_run.batch_size, 'lr', sweep_run.lr))
  )
) AS ordered
WHERE place <= $2 ORDER BY task_id, place
"""


async def sweep_marks(
    session: AsyncSession, *, project: str | None, tasks: Sequence[str] | None, limit: int
) -> list[SweepMark]:
    """Sweeps over batch sizes, newest first."""
    rows = await read(session, _SWEEPS, project, None if tasks is None else list(tasks), limit, projects_of(session))
    marks = dict(map(tuple, await read(session, _MARKS, [row[0] for row in rows])))
    return [SweepMark(*(*row[:-1], f"{marks.get(row[0], '0')} {row[-1]}")) for row in rows]


async def measured_runs(session: AsyncSession, run_ids: Sequence[UUID]) -> dict[UUID, MeasuredRun]:
    """Those of the runs that have steps, by id."""
    found: dict[UUID, tuple[tuple[datetime, UUID, str | None, float, str], list[Coverage]]] = {}
    for run_id, created_at, task_id, optimizer, units, unit, *coverage in await read(
        session, _RUNS, list(run_ids), SIMPLE, projects_of(session)
    ):
        _, streams = found.setdefault(run_id, ((created_at, task_id, optimizer, units, unit), []))
        streams.append(Coverage.of_row(*coverage))
    return {run_id: MeasuredRun(run_id, *fields, tuple(streams)) for run_id, (fields, streams) in found.items()}


async def resolved_runs(
    session: AsyncSession, task_ids: Sequence[UUID], *, at_most: int
) -> dict[tuple[UUID, str | None], list[UUID]]:
    """The longest runs with a resolved latest window, by task and optimizer.

    None at a learning rate that a sweep has found not to be the best: its noise scale is that of the rate.
    """
    found: dict[tuple[UUID, str | None], list[UUID]] = {}
    for run_id, task_id, optimizer in await read(session, _RESOLVED, list(task_ids), at_most):
        found.setdefault((task_id, optimizer), []).append(run_id)
    return found


_OF_TASK = """
SELECT run.id, run.name, run.config -> $3::text AS size
FROM run JOIN task ON task.id = run.task_id JOIN project ON project.id = run.project_id
WHERE project.name = $1 AND task.name = $2 AND NOT run.archived AND run.latest_step IS NOT NULL
  AND ($3::text IS NULL OR jsonb_typeof(run.config -> $3::text) = 'number')
ORDER BY run.latest_step DESC, run.id
LIMIT $4
"""


async def runs_of_task(
    session: AsyncSession, *, project: str, task: str, config_key: str | None, limit: int
) -> list[tuple[UUID, str, float | None]]:
    """(id, name, number under the key of its config) of a task's longest runs; with a key only those that have one."""
    rows = await read(session, _OF_TASK, project, task, config_key, limit)
    return [(run_id, name, None if size is None else float(size)) for run_id, name, size in rows]


_SIZED = """
SELECT project.name, task.name, count(*), count(DISTINCT run.config -> $1::text)
FROM run JOIN task ON task.id = run.task_id JOIN project ON project.id = run.project_id
WHERE NOT run.archived AND run.latest_step IS NOT NULL AND jsonb_typeof(run.config -> $1::text) = 'number'
  AND ($3::uuid[] IS NULL OR project.id = ANY ($3))
GROUP BY project.name, task.name
HAVING count(DISTINCT run.config -> $1::text) > 1
ORDER BY 4 DESC, 3 DESC, 1, 2
LIMIT $2
"""


@dataclass(frozen=True, slots=True)
class SizedTask:
    """A task with runs of several sizes.

    Attributes:
        project: Name of the project.
        task: Name of the task.
        num_runs: That have measurements and say their size.
        num_sizes: Different sizes among them, two or more.
    """

    project: str
    task: str
    num_runs: int
    num_sizes: int


async def sized_tasks(session: AsyncSession, *, config_key: str, limit: int) -> list[SizedTask]:
    """Tasks whose runs hold two or more numbers under a key of their config, those with most sizes first."""
    return [SizedTask(*row) for row in await read(session, _SIZED, config_key, limit, projects_of(session))]
