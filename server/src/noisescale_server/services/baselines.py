"""The pinned baseline of a project: who may change its runs pins one, and everybody who reads it sees which."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.platform.errors import ProjectNotFound, RunNotFound, refuse
from noisescale_server.storage import baselines
from noisescale_server.storage.access import belonging
from noisescale_server.storage.runs import queries as run_queries


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run that others of its project are compared to."""

    run_id: UUID
    name: str
    pinned_at: datetime


async def of_project(session: AsyncSession, project: str) -> Baseline | None:
    """The project's baseline; None where nothing is pinned.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    found = await baselines.get(session, await _id_of(session, project))
    row = None if found is None else await run_queries.get_row(session, found.run_id)
    return None if found is None or row is None else Baseline(found.run_id, row.run.name, found.pinned_at)


async def pin(session: AsyncSession, by: Principal, project: str, run_id: UUID, now: datetime) -> Baseline:
    """Let the run be the project's baseline, instead of the one that is.

    Raises:
        ProjectNotFound: When there is no such project.
        RunNotFound: When no run has this id.
        InvalidInput: When the run is another project's.
    """
    project_id = await _id_of(session, project)
    # it cannot be deleted until it is pinned: its deletion takes the pin with it
    row = await run_queries.get_row(session, run_id, is_locked=True)
    if row is None:
        raise RunNotFound(run_id)
    if row.run.project_id != project_id:
        raise refuse("run_id", f"is a run of project {row.project!r}: pin one of {project!r}", str(run_id))
    await baselines.pin(session, project_id, run_id, now)
    await audit.note(session, by, "baseline pinned", project_id=project_id, run=str(run_id))
    return Baseline(run_id, row.run.name, now)


async def unpin(session: AsyncSession, by: Principal, project: str) -> None:
    """Let the project have no baseline; where it has none, nothing changes.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    project_id = await _id_of(session, project)
    run_id = await baselines.unpin(session, project_id)
    if run_id is not None:
        await audit.note(session, by, "baseline unpinned", project_id=project_id, run=str(run_id))


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id
