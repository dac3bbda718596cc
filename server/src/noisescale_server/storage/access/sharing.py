"""Links that show one run, and projects that everybody may read."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from asyncpg import Record
from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_or
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.tables import PublicProject, RunLink
from noisescale_server.storage.platform.driver import fetch, read

# a link goes with the right of whoever made it: who cannot share any more has shared nothing
_IN_FORCE = """
SELECT link.secret_hash, link.id, link.run_id, link.project_id
FROM run_link AS link LEFT JOIN person ON person.id = link.person_id
WHERE link.secret_hash = ANY ($1::bytea[]) AND link.expires_at > $2::timestamptz
  AND (link.person_id IS NULL OR (person.disabled_at IS NULL AND (person.is_administrator OR EXISTS (
    SELECT FROM membership
    WHERE membership.person_id = person.id AND membership.project_id = link.project_id AND membership.role = 'admin'
  ))))
"""


async def add_link(
    session: AsyncSession,
    *,
    secret_hash: bytes,
    run_id: UUID,
    project_id: UUID,
    person_id: UUID | None,
    made_by: str,
    expires_at: datetime,
) -> RunLink:
    """A new link."""
    values = {
        "secret_hash": secret_hash,
        "run_id": run_id,
        "project_id": project_id,
        "person_id": person_id,
        "made_by": made_by,
        "expires_at": expires_at,
    }
    return (await session.scalars(insert(RunLink).values(values).returning(RunLink))).one()


async def in_force(session: AsyncSession, digests: Collection[bytes], now: datetime) -> list[Record]:
    """(digest, id, run, project) of those links that are in force."""
    return await read(session, _IN_FORCE, list(digests), now)


async def links_of(session: AsyncSession, run_id: UUID, now: datetime) -> Sequence[RunLink]:
    """The run's links whose time is not over, newest first."""
    chosen = select(RunLink).where(RunLink.run_id == run_id, RunLink.expires_at > now)
    return (await session.scalars(chosen.order_by(RunLink.created_at.desc(), RunLink.id))).all()


async def end_link(session: AsyncSession, run_id: UUID, link_id: UUID) -> bool:
    """Whether the run had this link; it has ended."""
    ended = await session.scalar(
        delete(RunLink).where(RunLink.run_id == run_id, RunLink.id == link_id).returning(RunLink.id)
    )
    return ended is not None


async def end_all_links(session: AsyncSession) -> int:
    """End every link; how many there were."""
    return len(await fetch(session, "DELETE FROM run_link RETURNING id"))


async def end_over(session: AsyncSession, now: datetime) -> None:
    """Forget links whose time is over."""
    await session.execute(delete(RunLink).where(RunLink.expires_at <= now))


async def public_projects(session: AsyncSession) -> list[UUID]:
    """Projects that everybody may read."""
    return [row[0] for row in await read(session, "SELECT project_id FROM public_project")]


async def set_public(session: AsyncSession, project_id: UUID, *, is_public: bool) -> bool:
    """Let everybody read the project, or not; whether that is new."""
    if is_public:
        put = insert_or(PublicProject).values(project_id=project_id).on_conflict_do_nothing()
        return await session.scalar(put.returning(PublicProject.project_id)) is not None
    gone = delete(PublicProject).where(PublicProject.project_id == project_id).returning(PublicProject.project_id)
    return await session.scalar(gone) is not None
