"""Tasks of a project, with what belongs to each."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from asyncpg import Record
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task.

    Attributes:
        task_id: The task.
        project_id: Its project.
        name: Of the task.
        unit: What people count in.
        family: As its first run said.
        num_runs: Runs, archived ones left out.
        num_sweeps: Sweeps over batch sizes.
        num_branches: Branches of its runs.
    """

    task_id: UUID
    project_id: UUID
    name: str
    unit: str | None
    family: str | None
    num_runs: int
    num_sweeps: int
    num_branches: int


_TASKS = """
SELECT task.id, task.project_id, task.name, task.unit, task.family,
  (SELECT count(*) FROM sweep WHERE sweep.task_id = task.id AND kind = 'sweep'),
  (SELECT count(*) FROM sweep WHERE sweep.task_id = task.id AND kind = 'branch')
FROM task JOIN project ON project.id = task.project_id
WHERE project.name = $1 AND ($2::text IS NULL OR task.name = $2)
ORDER BY task.name
LIMIT $3
"""

_NUM_RUNS = "SELECT task_id, count(*) FROM run WHERE task_id = ANY ($1::uuid[]) AND NOT archived GROUP BY task_id"

_NEWEST_RESOLVED = """
SELECT DISTINCT ON (task_id) task_id, id FROM run
WHERE task_id = ANY ($1::uuid[]) AND NOT archived AND noise_scale_state = 'resolved'
ORDER BY task_id, updated_at DESC, id
"""

_OPTIMIZERS = """
SELECT optimizer, max(updated_at) AS newest FROM run
WHERE task_id = $1 AND NOT archived AND optimizer IS NOT NULL
GROUP BY optimizer ORDER BY newest DESC LIMIT 20
"""

_SHOWN = """
SELECT unit, example, units_per_example FROM run WHERE task_id = $1 ORDER BY created_at DESC LIMIT 1
"""


_UPDATES_NEEDED = """
SELECT min(noise_scale_updates_needed) FROM run WHERE task_id = $1 AND NOT archived
"""


async def project_exists(session: AsyncSession, project: str) -> bool:
    """True if a project has this name."""
    return bool(await read(session, "SELECT 1 FROM project WHERE name = $1", project))


async def of_project(session: AsyncSession, project: str, *, limit: int) -> list[TaskRow]:
    """Tasks by name."""
    return await _with_runs(session, await read(session, _TASKS, project, None, limit))


async def get(session: AsyncSession, project: str, name: str) -> TaskRow | None:
    """The task, or None."""
    rows = await _with_runs(session, await read(session, _TASKS, project, name, 1))
    return rows[0] if rows else None


async def _with_runs(session: AsyncSession, rows: Sequence[Record]) -> list[TaskRow]:
    num_runs = dict(map(tuple, await read(session, _NUM_RUNS, [row[0] for row in rows])))
    return [TaskRow(*(*row[:5], num_runs.get(row[0], 0), *row[5:])) for row in rows]


async def newest_resolved_runs(session: AsyncSession, task_ids: list[UUID]) -> dict[UUID, UUID]:
    """Of each task the run with a resolved noise scale that was active last."""
    return {row[0]: row[1] for row in await read(session, _NEWEST_RESOLVED, task_ids)}


async def optimizers(session: AsyncSession, task_id: UUID) -> list[str]:
    """Optimizers of the task's runs, the one used last first."""
    return [row[0] for row in await read(session, _OPTIMIZERS, task_id)]


async def updates_needed(session: AsyncSession, task_id: UUID) -> int | None:
    """The fewest measured steps that would resolve the noise scale of one of the task's runs; None where none tells."""
    found: int | None = (await read(session, _UPDATES_NEEDED, task_id))[0][0]
    return found


async def shown_in(session: AsyncSession, task_id: UUID) -> tuple[str, str, float] | None:
    """(unit, example, units per example) as the newest run says; None without a run."""
    rows = await read(session, _SHOWN, task_id)
    return (rows[0][0], rows[0][1] or "example", rows[0][2]) if rows else None
