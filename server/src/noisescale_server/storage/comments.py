"""Reading and writing comments on runs."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, and_, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class RunComment(Table):
    """What somebody has said about a run.

    `author` is what they were called then. `author_id` says who may change it: the person, or the lineage of a key that
    is nobody's; no foreign key, as a project moves to servers that do not know the person. `mentions` are the names of
    people of the project behind an @, as they were called then.
    """

    __tablename__ = "run_comment"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    author: Mapped[str]
    author_id: Mapped[str]
    text: Mapped[str]
    mentions: Mapped[list[str]] = mapped_column(server_default="{}")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    edited_at: Mapped[datetime | None]


async def of_run(
    session: AsyncSession, run_id: UUID, *, limit: int, after: tuple[datetime, UUID] | None = None
) -> Sequence[RunComment]:
    """The run's comments, newest first; those of one moment by their ids.

    Args:
        session: Where to read.
        run_id: Of the run.
        limit: At most so many.
        after: Moment and id of the comment behind which they begin; None: from the newest.
    """
    query = select(RunComment).where(RunComment.run_id == run_id)
    if after is not None:
        moment, comment_id = after
        is_of_the_moment = and_(RunComment.created_at == moment, RunComment.id > comment_id)
        query = query.where(or_(RunComment.created_at < moment, is_of_the_moment))
    return (await session.scalars(query.order_by(RunComment.created_at.desc(), RunComment.id).limit(limit))).all()


async def count(session: AsyncSession, run_id: UUID) -> int:
    """How many the run has."""
    return await session.scalar(select(func.count()).select_from(RunComment).where(RunComment.run_id == run_id)) or 0


async def get(session: AsyncSession, run_id: UUID, comment_id: UUID) -> RunComment | None:
    """The run's comment of this id, locked until the transaction ends; None where it has none."""
    query = select(RunComment).where(RunComment.run_id == run_id, RunComment.id == comment_id).with_for_update()
    return (await session.scalars(query.execution_options(populate_existing=True))).one_or_none()


async def add(session: AsyncSession, run_id: UUID, **columns: Any) -> RunComment:
    """A new comment."""
    return (await session.scalars(insert(RunComment).values(run_id=run_id, **columns).returning(RunComment))).one()


async def change(session: AsyncSession, run_id: UUID, comment_id: UUID, **columns: Any) -> RunComment:
    """The comment as it is then."""
    is_it = and_(RunComment.run_id == run_id, RunComment.id == comment_id)
    changed = update(RunComment).where(is_it).values(columns).returning(RunComment)
    return (await session.scalars(changed.execution_options(populate_existing=True))).one()


async def remove(session: AsyncSession, run_id: UUID, comment_id: UUID) -> None:
    """Delete a comment."""
    await session.execute(delete(RunComment).where(RunComment.run_id == run_id, RunComment.id == comment_id))


async def that_mention(session: AsyncSession, run_ids: Collection[UUID], *, since: datetime) -> Sequence[RunComment]:
    """Comments on these runs, made since then, in which people are mentioned; newest first."""
    query = select(RunComment).where(RunComment.run_id.in_(run_ids), RunComment.created_at >= since)
    query = query.where(func.cardinality(RunComment.mentions) > 0)
    return (await session.scalars(query.order_by(RunComment.created_at.desc(), RunComment.id))).all()
