"""Which run is the baseline of its project."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, delete, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Table

_RUNS = "SELECT run_id FROM project_baseline WHERE project_id = ANY($1::uuid[])"


class ProjectBaseline(Table):
    """The run that others of the project are compared to; with the run it goes (`storage/runs/queries.py`)."""

    __tablename__ = "project_baseline"

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    # no foreign key: a small table cannot refer to one that is distributed
    run_id: Mapped[UUID]
    pinned_at: Mapped[datetime] = mapped_column(server_default=func.now())


async def of_projects(session: AsyncSession, project_ids: Collection[UUID]) -> set[UUID]:
    """Runs that are the baseline of one of these projects."""
    return {row["run_id"] for row in await read(session, _RUNS, list(project_ids))}


async def get(session: AsyncSession, project_id: UUID) -> ProjectBaseline | None:
    """The project's baseline, or None."""
    return await session.get(ProjectBaseline, project_id, populate_existing=True)


async def pin(session: AsyncSession, project_id: UUID, run_id: UUID, at: datetime) -> None:
    """Let this run be the project's baseline, instead of the one that is."""
    values = {"run_id": run_id, "pinned_at": at}
    row = insert(ProjectBaseline).values(project_id=project_id, **values)
    await session.execute(row.on_conflict_do_update(index_elements=[ProjectBaseline.project_id], set_=values))


async def unpin(session: AsyncSession, project_id: UUID) -> UUID | None:
    """The run that was the project's baseline; None where it had none."""
    gone = delete(ProjectBaseline).where(ProjectBaseline.project_id == project_id)
    found: UUID | None = await session.scalar(gone.returning(ProjectBaseline.run_id))
    return found
