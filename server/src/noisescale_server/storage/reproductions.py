"""Reproductions and the projects that they belong to."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import CheckConstraint, ColumnElement, ForeignKey, Index, Select, delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, aliased, defer, mapped_column

from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Project, Table

Kind = Literal["claim", "advice"]


class Reproduction(Table):
    """What one campaign found. `id` follows from project and content: the same content again is the same row."""

    __tablename__ = "reproduction"
    __table_args__ = (CheckConstraint("kind IN ('claim', 'advice')", name="kind"), Index(None, "project_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    kind: Mapped[str]
    effort: Mapped[str]
    seed: Mapped[int]
    version: Mapped[str]
    content: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReproduction:
    """What a client sends of a campaign; `content` is what it found."""

    id: UUID
    project: str
    kind: Kind
    effort: str
    seed: int
    version: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReproductionRow:
    """A reproduction with the name of its project."""

    reproduction: Reproduction
    project: str


async def create_if_absent(session: AsyncSession, new: NewReproduction) -> bool:
    """True if it was created, False if it was there; the project is created on first use."""
    await session.execute(insert(Project).values(name=new.project).on_conflict_do_nothing())
    found = await read(session, "SELECT id FROM project WHERE name = $1::text", new.project)
    project_id = found[0]["id"]
    values = {name: value for name, value in asdict(new).items() if name != "project"} | {"project_id": project_id}
    created = insert(Reproduction).values(values).on_conflict_do_nothing(index_elements=[Reproduction.id])
    return await session.scalar(created.returning(Reproduction.id)) is not None


async def get_row(session: AsyncSession, reproduction_id: UUID) -> ReproductionRow | None:
    """The reproduction, or None."""
    found = (await session.execute(_rows().where(Reproduction.id == reproduction_id))).one_or_none()
    return None if found is None else ReproductionRow(*found)


async def list_page(
    session: AsyncSession, *, project: str | None, kind: Kind | None, limit: int, after: UUID | None
) -> list[ReproductionRow]:
    """Reproductions without what they found, newest first; those behind the reproduction `after`."""
    order = (Reproduction.created_at.desc(), Reproduction.id.desc())
    query = _rows().options(defer(Reproduction.content, raiseload=True))
    query = query.where(*_conditions(project, kind)).order_by(*order).limit(limit)
    if after is not None:
        last = aliased(Reproduction)
        moment = select(last.created_at).where(last.id == after).scalar_subquery()
        query = query.where(tuple_(Reproduction.created_at, Reproduction.id) < tuple_(moment, after))
    return [ReproductionRow(*row) for row in await session.execute(query)]


async def count(session: AsyncSession, *, project: str | None, kind: Kind | None) -> int:
    """How many reproductions there are."""
    query = select(func.count(Reproduction.id)).join(Project, Project.id == Reproduction.project_id)
    return await session.scalar(query.where(*_conditions(project, kind))) or 0


async def remove(session: AsyncSession, reproduction_id: UUID) -> bool:
    """True if the reproduction existed."""
    removed = delete(Reproduction).where(Reproduction.id == reproduction_id).returning(Reproduction.id)
    return await session.scalar(removed) is not None


def _rows() -> Select[Reproduction, str]:
    return select(Reproduction, Project.name).join(Project, Project.id == Reproduction.project_id)


def _conditions(project: str | None, kind: Kind | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if project is not None:
        conditions.append(Project.name == project)
    if kind is not None:
        conditions.append(Reproduction.kind == kind)
    return conditions
