"""What those may see who have no login: one run by a link, for some time, and projects that are open to everybody."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal, Right
from noisescale_server.services.access.sessions import Secret
from noisescale_server.services.platform.errors import LinkNotFound, ProjectNotFound, RunNotFound
from noisescale_server.storage.access import belonging, sharing
from noisescale_server.storage.access.tables import RunLink

USUAL: Final = timedelta(days=7)
LONGEST: Final = timedelta(days=365)

READING: Final = frozenset({Right.READ})


@dataclass(frozen=True, slots=True)
class NewLink:
    """A link just made; its secret is shown this once."""

    link: RunLink
    secret: Secret = field(repr=False)


async def make_link(session: AsyncSession, by: Principal, run_id: UUID, lives: timedelta, now: datetime) -> NewLink:
    """Let whoever has the link read this run, and nothing else, for so long.

    Raises:
        RunNotFound: When no run has this id.
    """
    project_id = await belonging.project_of(session, "run", run_id)
    if project_id is None:
        raise RunNotFound(run_id)
    await sharing.end_over(session, now)
    secret = Secret.new()
    link = await sharing.add_link(
        session,
        secret_hash=secret.digest,
        run_id=run_id,
        project_id=project_id,
        person_id=by.person_id,
        made_by=by.name,
        expires_at=now + lives,
    )
    said = {"run": str(run_id), "link": str(link.id), "expires_at": link.expires_at.isoformat(timespec="seconds")}
    await audit.note(session, by, "run link made", project_id=project_id, **said)
    return NewLink(link, secret)


async def links_of(session: AsyncSession, run_id: UUID, now: datetime) -> Sequence[RunLink]:
    """The run's links whose time is not over, newest first.

    Raises:
        RunNotFound: When no run has this id.
    """
    if await belonging.project_of(session, "run", run_id) is None:
        raise RunNotFound(run_id)
    return await sharing.links_of(session, run_id, now)


async def end_link(session: AsyncSession, by: Principal, run_id: UUID, link_id: UUID) -> None:
    """End a link: at once, in every server process.

    Raises:
        LinkNotFound: When the run has no such link.
    """
    if not await sharing.end_link(session, run_id, link_id):
        raise LinkNotFound(link_id)
    project_id = await belonging.project_of(session, "run", run_id)
    await audit.note(session, by, "run link ended", project_id=project_id, run=str(run_id), link=str(link_id))


async def visitors_of(
    session: AsyncSession, secrets: Collection[Secret], *, now: datetime
) -> Mapping[Secret, Principal]:
    """Who comes by which link; without those whose link has ended."""
    rows = await sharing.in_force(session, [one.digest for one in secrets], now)
    found = {bytes(row["secret_hash"]): row for row in rows}
    return {one: _visitor(found[one.digest]) for one in secrets if one.digest in found}


def _visitor(row: Any) -> Principal:
    rights = {row["project_id"]: READING}
    return Principal("link", str(row["id"]), "whoever has this link", rights=rights, run_id=row["run_id"])


async def everybody(session: AsyncSession) -> Principal | None:
    """Who has said nothing of themselves; None where no project is open to everybody."""
    projects = await sharing.public_projects(session)
    rights = dict.fromkeys(projects, READING)
    return Principal("everybody", "everybody", "everybody", rights=rights) if rights else None


async def is_public(session: AsyncSession, project: str) -> bool:
    """Whether everybody may read the project.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    return await _id_of(session, project) in await sharing.public_projects(session)


async def set_public(session: AsyncSession, by: Principal, project: str, *, is_public: bool) -> None:
    """Let everybody read the project, or nobody without a role.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    project_id = await _id_of(session, project)
    if await sharing.set_public(session, project_id, is_public=is_public):
        action = "project opened to everybody" if is_public else "project closed to everybody"
        await audit.note(session, by, action, project_id=project_id)


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id
