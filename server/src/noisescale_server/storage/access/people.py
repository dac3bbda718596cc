"""People and what they are in which project."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from asyncpg import Record
from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.tables import Membership, Person
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Project

ENABLED_COLUMNS = """
person.id, person.name, person.is_administrator,
ARRAY(SELECT m.project_id FROM membership m WHERE m.person_id = person.id ORDER BY m.project_id) AS projects,
ARRAY(SELECT m.role FROM membership m WHERE m.person_id = person.id ORDER BY m.project_id) AS roles
"""
_ENABLED = f"SELECT {ENABLED_COLUMNS} FROM person WHERE id = ANY($1::uuid[]) AND disabled_at IS NULL"  # noqa: S608


async def get(session: AsyncSession, person_id: UUID) -> Person | None:
    """The person, or None."""
    return await session.get(Person, person_id, populate_existing=True)


@dataclass(frozen=True, slots=True)
class Enabled:
    """Somebody who may log in, with the role in each project."""

    id: UUID
    name: str
    is_administrator: bool
    roles: Mapping[UUID, str]

    @classmethod
    def of(cls, row: Record) -> "Enabled":
        """The person of a row with `ENABLED_COLUMNS`."""
        roles = dict(zip(row["projects"], row["roles"], strict=True))
        return cls(row["id"], row["name"], row["is_administrator"], roles)


async def enabled(session: AsyncSession, person_ids: Collection[UUID]) -> list[Enabled]:
    """Those of these people that there are and that are not disabled."""
    return [Enabled.of(row) for row in await read(session, _ENABLED, list(person_ids))]


async def hold(session: AsyncSession, person_id: UUID) -> Person | None:
    """The person, or None; neither disabled nor enabled by others until the transaction ends."""
    query = select(Person).where(Person.id == person_id).with_for_update(key_share=True)
    return (await session.scalars(query.execution_options(populate_existing=True))).one_or_none()


async def hold_administrators(session: AsyncSession) -> set[UUID]:
    """The admins of all projects who may log in; nobody else takes one away until the transaction ends.

    Who waits here for another's transaction sees what that one has left: Postgres looks at the rows again.
    """
    query = select(Person.id).where(Person.is_administrator, Person.disabled_at.is_(None))
    return set(await session.scalars(query.order_by(Person.id).with_for_update(key_share=True)))


async def change(
    session: AsyncSession, person_id: UUID, *, is_administrator: bool, disabled_at: datetime | None
) -> None:
    """Write down whether the person is an admin of all projects, and since when they are disabled."""
    values = {"is_administrator": is_administrator, "disabled_at": disabled_at}
    await session.execute(update(Person).where(Person.id == person_id).values(values))


async def add(session: AsyncSession, *, name: str, email: str | None, is_administrator: bool) -> UUID:
    """The id of a new person."""
    values = {"name": name, "email": email, "is_administrator": is_administrator}
    person_id: UUID = (await session.scalars(insert(Person).values(values).returning(Person.id))).one()
    return person_id


async def of_subject(session: AsyncSession, subject: str, *, name: str, email: str | None) -> UUID:
    """The person whom the organisation's login calls so, created at the first login; the name is kept up to date."""
    row = insert(Person).values(subject=subject, name=name, email=email)
    kept = row.on_conflict_do_update(index_elements=[Person.subject], set_={"name": name, "email": email})
    person_id: UUID = (await session.scalars(kept.returning(Person.id))).one()
    return person_id


async def everybody(session: AsyncSession) -> Sequence[Person]:
    """All people by name."""
    return (await session.scalars(select(Person).order_by(Person.name, Person.id))).all()


async def has_administrator(session: AsyncSession) -> bool:
    """True if anybody is an admin of all projects."""
    query = select(func.count()).select_from(Person).where(Person.is_administrator, Person.disabled_at.is_(None))
    return bool(await session.scalar(query))


async def members(session: AsyncSession, project_ids: Sequence[UUID] | None) -> list[tuple[UUID, str, UUID, str]]:
    """(person, name of the project, id of the project, role) of the memberships in these projects; None: in all."""
    query = (
        select(Membership.person_id, Project.name, Project.id, Membership.role)
        .join(Project, Project.id == Membership.project_id)
        .order_by(Project.name, Membership.person_id)
    )
    if project_ids is not None:
        query = query.where(Membership.project_id.in_(project_ids))
    return [(person_id, name, project_id, role) for person_id, name, project_id, role in await session.execute(query)]


async def names_of_project(session: AsyncSession, project_id: UUID, *, limit: int) -> list[str]:
    """What the people are called who may enter the project, each name once, in order; without who is disabled."""
    is_member = exists().where(Membership.person_id == Person.id, Membership.project_id == project_id)
    query = select(Person.name).where(Person.disabled_at.is_(None), or_(Person.is_administrator, is_member))
    return list(await session.scalars(query.distinct().order_by(Person.name).limit(limit)))


async def set_role(session: AsyncSession, project_id: UUID, person_id: UUID, role: str) -> None:
    """Set the person's role in the project."""
    row = insert(Membership).values(project_id=project_id, person_id=person_id, role=role)
    await session.execute(row.on_conflict_do_update(index_elements=["project_id", "person_id"], set_={"role": role}))


async def remove(session: AsyncSession, project_id: UUID, person_id: UUID) -> bool:
    """True if the person was a member of the project."""
    gone = delete(Membership).where(Membership.project_id == project_id, Membership.person_id == person_id)
    return await session.scalar(gone.returning(Membership.person_id)) is not None


async def project_names(session: AsyncSession, project_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Names of projects by id, in their order."""
    query = select(Project.id, Project.name).where(Project.id.in_(project_ids)).order_by(Project.name)
    return dict((await session.execute(query)).all())
