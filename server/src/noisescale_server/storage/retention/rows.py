"""Reading and writing how long projects keep their rows."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class ProjectRetention(Table):
    """Days without data after which a run's rows are folded into its pyramid; a project without a row folds nothing."""

    __tablename__ = "project_retention"
    __table_args__ = (CheckConstraint("fold_after_days >= 1", name="days"),)

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    fold_after_days: Mapped[int]
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())


async def days_of(session: AsyncSession, project_id: UUID) -> int | None:
    """After how many days the project folds; None: never."""
    query = select(ProjectRetention.fold_after_days).where(ProjectRetention.project_id == project_id)
    days: int | None = await session.scalar(query)
    return days


async def put(session: AsyncSession, project_id: UUID, days: int | None) -> None:
    """Let the project fold after so many days from now on, or never."""
    if days is None:
        await session.execute(delete(ProjectRetention).where(ProjectRetention.project_id == project_id))
        return
    # a distributed Postgres takes no clock of its own behind a conflict
    stored = insert(ProjectRetention).values(project_id=project_id, fold_after_days=days, changed_at=func.now())
    changed = {"fold_after_days": stored.excluded.fold_after_days, "changed_at": stored.excluded.changed_at}
    await session.execute(stored.on_conflict_do_update(index_elements=[ProjectRetention.project_id], set_=changed))
