"""Views that a project shares: who may change its runs makes, renames and deletes them; who reads it uses them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access.access import Principal
from noisescale_server.services.platform.errors import ProjectNotFound, ViewNotFound, refuse
from noisescale_server.storage import views
from noisescale_server.storage.access import belonging
from noisescale_server.storage.views import SavedView

MAX_VIEWS: Final = 100


async def of_project(session: AsyncSession, project: str) -> Sequence[SavedView]:
    """The project's views by name.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    return await views.of_project(session, await _id_of(session, project))


async def add(session: AsyncSession, by: Principal, project: str, *, name: str, page: str, query: str) -> SavedView:
    """A new view of the project.

    Raises:
        ProjectNotFound: When there is no such project.
        InvalidInput: When it has one of this name, or as many as it may have.
    """
    project_id = await _id_of(session, project)
    if await views.count(session, project_id) >= MAX_VIEWS:
        raise refuse("name", f"a project shares at most {MAX_VIEWS} views: delete one first", name)
    added = await views.add(session, project_id, name=name, author=by.name, page=page, query=query)
    if added is None:
        raise _taken(name)
    return added


async def rename(session: AsyncSession, project: str, view_id: UUID, name: str) -> SavedView:
    """The view under its new name.

    Raises:
        ProjectNotFound: When there is no such project.
        ViewNotFound: When the project has none of this id.
        InvalidInput: When another view has this name.
    """
    project_id = await _id_of(session, project)
    other = await views.named(session, project_id, name)
    if other is not None and other.id != view_id:
        raise _taken(name)
    renamed = await views.rename(session, project_id, view_id, name)
    if renamed is None:
        raise ViewNotFound(view_id)
    return renamed


async def delete(session: AsyncSession, project: str, view_id: UUID) -> None:
    """Share a view no more.

    Raises:
        ProjectNotFound: When there is no such project.
        ViewNotFound: When the project has none of this id.
    """
    if not await views.remove(session, await _id_of(session, project), view_id):
        raise ViewNotFound(view_id)


def _taken(name: str) -> Exception:
    return refuse("name", "is that of another view of the project: take another name, or delete that view", name)


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id
