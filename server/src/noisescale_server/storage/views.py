"""Reading and writing the views that projects share."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, UniqueConstraint, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class SavedView(Table):
    """What a page of the dashboard shows, under a name: the query part of its address. `author` is whoever made it."""

    __tablename__ = "saved_view"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    author: Mapped[str]
    page: Mapped[str]
    query: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


async def of_project(session: AsyncSession, project_id: UUID) -> Sequence[SavedView]:
    """The project's views by name."""
    rows = select(SavedView).where(SavedView.project_id == project_id)
    return (await session.scalars(rows.order_by(SavedView.name))).all()


async def count(session: AsyncSession, project_id: UUID) -> int:
    """How many views the project has."""
    rows = select(func.count()).select_from(SavedView).where(SavedView.project_id == project_id)
    return await session.scalar(rows) or 0


async def add(
    session: AsyncSession, project_id: UUID, *, name: str, author: str, page: str, query: str
) -> SavedView | None:
    """The new view; None where the project has one of this name."""
    row = insert(SavedView).values(project_id=project_id, name=name, author=author, page=page, query=query)
    unless_there = row.on_conflict_do_nothing(index_elements=[SavedView.project_id, SavedView.name])
    return await session.scalar(unless_there.returning(SavedView))


async def named(session: AsyncSession, project_id: UUID, name: str) -> SavedView | None:
    """The project's view of this name."""
    return await session.scalar(select(SavedView).where(SavedView.project_id == project_id, SavedView.name == name))


async def rename(session: AsyncSession, project_id: UUID, view_id: UUID, name: str) -> SavedView | None:
    """The view under its new name; None where the project has none of this id."""
    row = update(SavedView).where(SavedView.project_id == project_id, SavedView.id == view_id).values(name=name)
    return await session.scalar(row.returning(SavedView))


async def remove(session: AsyncSession, project_id: UUID, view_id: UUID) -> bool:
    """True if the project had it."""
    row = delete(SavedView).where(SavedView.project_id == project_id, SavedView.id == view_id)
    return await session.scalar(row.returning(SavedView.id)) is not None
