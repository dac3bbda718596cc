"""How long a project keeps the rows of its runs: read by its people, changed by its admins."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.platform.errors import ProjectNotFound
from noisescale_server.storage.access import belonging
from noisescale_server.storage.retention import rows

MAX_DAYS = 36_500


async def of_name(session: AsyncSession, project: str) -> int | None:
    """Days without data after which rows of a run are folded; None: never.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    return await rows.days_of(session, await _id_of(session, project))


async def put(session: AsyncSession, by: Principal, project: str, days: int | None) -> int | None:
    """Let the project fold after so many days, or never.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    project_id = await _id_of(session, project)
    if days != await rows.days_of(session, project_id):
        await rows.put(session, project_id, days)
        said = "never" if days is None else str(days)
        await audit.note(session, by, "project retention set", project_id=project_id, fold_after_days=said)
    return days


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id
