"""Runs with their project and task."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch_row
from noisescale_server.storage.platform.tables import DeletedRun, Project, Run, Task
from noisescale_server.storage.runs import trials

# When a run was last heard of, so that an index can hold it: `run.heard_at` follows `run.updated_at` by the minute.
#
# Every batch changes `updated_at`; an index on it would make each of them write to every index of the table.

BEHIND: Final = timedelta(seconds=61)
"""How much earlier than `updated_at` it may be, for a search along the index; it is never later."""
MOVED_ON: Final = "heard_at = greatest(heard_at, date_trunc('minute', statement_timestamp()))"
"""What a statement says beside `updated_at = statement_timestamp()`; Citus takes no clock inside a CASE."""


def heard_since(moment: datetime) -> ColumnElement[bool]:
    """What every run holds that was updated after a moment, and few others."""
    return Run.heard_at > moment - BEHIND


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What a client says about a run when it starts."""

    id: UUID
    project: str
    task: str = "default"
    name: str | None = None
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    unit: str = "examples"
    example: str | None = None
    units_per_example: float = 1.0
    num_devices: int | None = None
    device: str | None = None
    usd_per_device_hour: float | None = None
    family: str | None = None
    planned_steps: int | None = None


async def get(session: AsyncSession, run_id: UUID) -> Run | None:
    """The run, or None."""
    return await session.get(Run, run_id)


async def several(session: AsyncSession, run_ids: Sequence[UUID]) -> list[Run]:
    """Those of the runs that there are, in the order of the ids."""
    found = {run.id: run for run in await session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    return [found[run_id] for run_id in run_ids if run_id in found]


async def create_if_absent(session: AsyncSession, new: NewRun) -> bool:
    """True if the run was created, False if its id existed already; an existing run is left as it is.

    Project and task are created on their first run.
    """
    if await session.scalar(select(Run.id).where(Run.id == new.id)) is not None:
        return False
    project_id, task_id = await filed_under(session, new.project, new.task, unit=new.unit, family=new.family)
    filed = {"project_id": project_id, "task_id": task_id, "trial_of": trials.of_task(task_id, new.tags)}
    row = _row(new) | filed
    created = await session.scalar(
        insert(Run).values(row).on_conflict_do_nothing(index_elements=[Run.id]).returning(Run.id)
    )
    return created is not None


_FILED = """
SELECT project.id, task.id FROM project LEFT JOIN task ON task.project_id = project.id AND task.name = $2::text
WHERE project.name = $1::text
"""


async def filed_under(
    session: AsyncSession, project: str, task: str, *, unit: str, family: str | None = None
) -> tuple[UUID, UUID]:
    """The ids of a project and a task of it, whoever asks; what is missing is created.

    Small tables are on every node of a distributed Postgres: they are written to only when something is missing.
    """
    found = await fetch_row(session, _FILED, project, task)
    if found is None:
        await session.execute(insert(Project).values(name=project).on_conflict_do_nothing())
        found = await fetch_row(session, _FILED, project, task)
    if found is not None and found[1] is None:
        row = insert(Task).values(project_id=found[0], name=task, unit=unit, family=family)
        await session.execute(row.on_conflict_do_nothing())
        found = await fetch_row(session, _FILED, project, task)
    assert found is not None, "nobody deletes a project"
    return found[0], found[1]


async def hold(session: AsyncSession, run_id: UUID) -> bool:
    """True if the run exists; it cannot be deleted until the transaction ends."""
    held = select(Run.id).where(Run.id == run_id).with_for_update(read=True, key_share=True)
    return await session.scalar(held) is not None


async def lock(session: AsyncSession, run_id: UUID) -> None:
    """Wait until no other transaction changes the run's row; none does until this one ends."""
    await session.execute(select(Run.id).where(Run.id == run_id).with_for_update(key_share=True))


async def is_deleted(session: AsyncSession, run_id: UUID) -> bool:
    """True if a run of this id was deleted.

    To be asked when the run's row is held, or known to be gone: a deletion may commit until then.
    """
    return await session.get(DeletedRun, run_id) is not None


def _row(new: NewRun) -> dict[str, Any]:
    values = {name: value for name, value in asdict(new).items() if name not in {"project", "task"}}
    return values | {"name": new.name or str(new.id)[:8]}
