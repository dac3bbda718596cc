"""Runs with their project and task."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ScalarSelect, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.tables import DeletedRun, Project, Run, Task


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
    await session.execute(insert(Project).values(name=new.project).on_conflict_do_nothing())
    project_id = select(Project.id).where(Project.name == new.project).scalar_subquery()
    task = insert(Task).values(project_id=project_id, name=new.task, unit=new.unit, family=new.family)
    await session.execute(task.on_conflict_do_nothing())
    created = await session.scalar(
        insert(Run).values(_row(new, project_id)).on_conflict_do_nothing(index_elements=[Run.id]).returning(Run.id)
    )
    return created is not None


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


def _row(new: NewRun, project_id: ScalarSelect[UUID]) -> dict[str, Any]:
    task_id = select(Task.id).where(Task.project_id == project_id, Task.name == new.task).scalar_subquery()
    values = {name: value for name, value in asdict(new).items() if name not in {"project", "task"}}
    return values | {"name": new.name or str(new.id)[:8], "project_id": project_id, "task_id": task_id}
