"""API keys, and who created which run."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.tables import ApiKey, RunAuthor
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Project

_SEVERAL = f"SELECT {', '.join(ApiKey.__table__.columns.keys())} FROM api_key WHERE id = ANY($1::text[])"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key as it is kept: the digest of its secret, never the secret."""

    id: str
    lineage: str
    secret_hash: bytes
    scope: str
    name: str
    owner_id: UUID | None
    project_ids: list[UUID] | None
    expires_at: datetime


async def get(session: AsyncSession, key_id: str) -> ApiKey | None:
    """The key, or None."""
    return await session.get(ApiKey, key_id, populate_existing=True)


async def several(session: AsyncSession, key_ids: Collection[str]) -> dict[str, ApiKey]:
    """Those of these keys that there are, by id, to look at: no session keeps or writes them."""
    rows = await read(session, _SEVERAL, list(key_ids))
    return {row["id"]: ApiKey(**dict(row)) for row in rows}


async def add(session: AsyncSession, new: NewApiKey) -> None:
    """Insert a key."""
    await session.execute(insert(ApiKey).values(asdict(new)))


async def everybodys(session: AsyncSession) -> Sequence[ApiKey]:
    """All keys, newest first."""
    return (await session.scalars(select(ApiKey).order_by(ApiKey.created_at.desc(), ApiKey.id))).all()


async def of_owner(session: AsyncSession, owner_id: UUID) -> Sequence[ApiKey]:
    """The keys of a person, newest first."""
    query = select(ApiKey).where(ApiKey.owner_id == owner_id).order_by(ApiKey.created_at.desc(), ApiKey.id)
    return (await session.scalars(query)).all()


async def of_lineage(session: AsyncSession, lineage: str) -> Sequence[ApiKey]:
    """The keys that were rotated from one another, locked until the transaction ends."""
    known = select(ApiKey.id).where(ApiKey.lineage == lineage).order_by(ApiKey.id).with_for_update()
    await session.execute(known)
    # asked again: who waited for another transaction does not see what that one has added, in the statement that waits
    query = select(ApiKey).where(ApiKey.lineage == lineage).order_by(ApiKey.id)
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def revoke(session: AsyncSession, key_id: str, at: datetime) -> bool:
    """True if the key was in force."""
    ended = update(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None)).values(revoked_at=at)
    return await session.scalar(ended.returning(ApiKey.id)) is not None


async def narrow(session: AsyncSession, key_id: str, project_ids: Sequence[UUID]) -> None:
    """Let the key name these projects only."""
    await session.execute(update(ApiKey).where(ApiKey.id == key_id).values(project_ids=list(project_ids)))


async def revoke_all(session: AsyncSession, at: datetime) -> Sequence[ApiKey]:
    """The keys that were in force: they have ended."""
    ended = update(ApiKey).where(ApiKey.revoked_at.is_(None), ApiKey.expires_at > at).values(revoked_at=at)
    return (await session.scalars(ended.returning(ApiKey))).all()


async def note_use(session: AsyncSession, key_id: str, at: datetime, address: str | None) -> None:
    """Note when and from where a key was used last."""
    values = {"last_used_at": at, "last_used_from": address}
    await session.execute(update(ApiKey).where(ApiKey.id == key_id).values(values))


async def note_author(session: AsyncSession, run_id: UUID, lineage: str) -> None:
    """Note that a key of this lineage has created the run or a stream of it."""
    await session.execute(insert(RunAuthor).values(run_id=run_id, lineage=lineage).on_conflict_do_nothing())


async def is_author(session: AsyncSession, run_id: UUID, lineage: str | None) -> bool:
    """Whether a key of this lineage has created the run or a stream of it."""
    query = select(RunAuthor.run_id).where(RunAuthor.run_id == run_id, RunAuthor.lineage == lineage)
    return await session.scalar(query) is not None


async def project_ids(session: AsyncSession, names: Sequence[str], *, creates: bool) -> list[UUID | None]:
    """Ids of the projects of these names, in their order; None for one that is not there and not to be created."""
    rows = [{"name": name} for name in sorted(set(names))]
    if creates and rows:
        await session.execute(insert(Project).values(rows).on_conflict_do_nothing())
    query = select(Project.name, Project.id).where(Project.name.in_(names))
    found: dict[str, UUID] = dict((await session.execute(query)).all())
    return [found.get(name) for name in names]
