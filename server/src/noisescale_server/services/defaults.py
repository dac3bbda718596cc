"""What a project takes for granted: read by every answer, changed by the project's admins."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.defaults import NO_DEFAULTS, Defaults
from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.platform.errors import ProjectNotFound
from noisescale_server.storage import defaults
from noisescale_server.storage import recommendation as run_decisions
from noisescale_server.storage.access import belonging


async def of_id(session: AsyncSession, project_id: UUID) -> Defaults:
    """What the project says; nothing where it has said nothing."""
    return (await defaults.of_projects(session, [project_id])).get(project_id, NO_DEFAULTS)


async def of_name(session: AsyncSession, project: str) -> Defaults:
    """What the project of this name says.

    Raises:
        ProjectNotFound: When there is none.
    """
    return await of_id(session, await _id_of(session, project))


async def put(session: AsyncSession, by: Principal, project: str, wanted: Defaults) -> Defaults:
    """Let the project say exactly this, and judge its runs anew by it.

    Raises:
        ProjectNotFound: When there is none.
    """
    project_id = await _id_of(session, project)
    before = await of_id(session, project_id)
    if wanted == before:
        return wanted
    await defaults.put(session, project_id, wanted)
    await run_decisions.mark_project(session, project_id)
    await audit.note(session, by, "project defaults set", project_id=project_id, **_said(wanted))
    return wanted


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id


def _said(wanted: Defaults) -> dict[str, str]:
    price = {} if wanted.device_hour_price is None else {"device": wanted.price_said}
    return {**price, **{name: str(value) for name, value in wanted.worth.items()}}
