"""May this principal do this here? Asked before every endpoint of the API, by one dependency."""

from collections.abc import Iterator
from typing import Annotated, Final
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.api.access import guests
from noisescale_server.api.access.route_rights import RIGHTS
from noisescale_server.api.platform.deps import projects_of, seen_by
from noisescale_server.services.access.access import Principal, Right
from noisescale_server.services.access.entering import Belonging, Kind
from noisescale_server.services.platform.errors import (
    DomainError,
    NotAllowed,
    NotAuthenticated,
    ProjectNotFound,
    ReproductionNotFound,
    RunIdTaken,
    RunNotFound,
    StreamNotFound,
    SweepNotFound,
)
from noisescale_server.storage.access import api_keys, belonging

NAMED_BY: Final[dict[str, Kind]] = {
    "run_id": "run",
    "stream_id": "stream",
    "sweep_id": "sweep",
    "reproduction_id": "reproduction",
    "project": "project",
}
"""Names of path and query parameters that say what is asked about."""

BODY_SAYS: Final = frozenset({("POST", "/streams/{stream_id}/batches")})
"""Routes whose body names the run, and which look it up themselves: a job's hot path asks once."""


async def authorize(request: Request) -> None:
    """Raise unless the request may do what its route does; its sessions then see the projects where it may.

    Raises:
        NotAuthenticated: When the gate has let nobody in.
        NotAllowed: Without the right, and for a route that no rule names.
        NotFound: For what belongs to another project, as if it were not there.
    """
    principal = principal_of(request)
    rule = (request.method, request.scope["route"].path)
    right = RIGHTS.get(rule)
    if right is None or not (right is Right.IDENTITY or principal.may_anywhere(right)):
        raise NotAllowed(f"{principal.name!r} may not do this: it needs the right to {words(right)}")
    guests.check_route(principal, *rule, named(request))
    request.state.projects, request.state.only_run = principal.projects_with(right), principal.run_id
    if request.state.projects is None or rule in BODY_SAYS:
        return
    async with request.app.state.sessions() as session:
        for kind, name in named(request):
            await enter(request, session, right, kind, name)


async def enter(request: Request, session: AsyncSession, right: Right, kind: Kind, name: UUID | str) -> None:
    """Raise unless the principal has the right in the project of this name, or of a run, stream, sweep, reproduction.

    Raises:
        NotFound: For another's, as if it were not there.
        NotAllowed: Where another role would be needed.
    """
    principal, known = principal_of(request), _belonging(request)
    project_id = await known.project_of(session, kind, name)
    if project_id is None:
        # what is not there is the endpoint's to answer; a new project is only for who may do this everywhere
        if kind == "project" and principal.projects_with(right) is not None:
            raise ProjectNotFound(str(name))
        return
    if not principal.rights_in(project_id):
        raise not_found(kind, name)
    if not principal.may(right, project_id):
        raise NotAllowed(f"{principal.name!r} may not do this here: it needs the right to {words(right)}")
    if principal.reads_only_its_own and right is Right.CURSOR and not await _is_own(session, principal, kind, name):
        raise not_found(kind, name)


async def enter_project(request: Request, name: str) -> None:
    """Raise unless what a body brings may be added to the project of this name.

    Raises:
        NotAllowed: For another's project, and alike for a new one, which only an admin of all projects begins: a job
            then keeps its records and asks again, instead of taking them for lost.
    """
    if projects_of(request) is None:
        return
    async with request.app.state.sessions() as session:
        project_id = await _belonging(request).project_of(session, "project", name)
    if project_id is None or not principal_of(request).may(Right.APPEND, project_id):
        raise NotAllowed(f"{principal_of(request).name!r} may not write to project {name!r}: ask an admin for a key")


async def enter_if_there(request: Request, kind: Kind, name: UUID | None) -> None:
    """Raise where a body names something that is to be created and that others have already, as if it were not there.

    Raises:
        NotFound: Where it is another's.
        NotAllowed: Where another role would be needed.
    """
    if name is None or projects_of(request) is None:
        return
    async with request.app.state.sessions() as session:
        await enter(request, session, Right.APPEND, kind, name)


async def enter_run(request: Request, run_id: UUID, project: str | None) -> None:
    """Raise unless what a body brings may be added to this run, or to the project where it is to be created.

    Raises:
        RunNotFound: For a run of another's project.
        NotAllowed: For a project that is another's, or new.
    """
    if projects_of(request) is None:
        return
    async with request.app.state.sessions() as session:
        await enter(request, session, Right.APPEND, "run", run_id)
        is_new = await _belonging(request).project_of(session, "run", run_id) is None
    if is_new and project is not None:
        await enter_project(request, project)


async def note_author(request: Request, session: AsyncSession, run_id: UUID) -> None:
    """Note that a key has created a run, or a stream of it."""
    lineage = principal_of(request).lineage
    if lineage is not None:
        await api_keys.note_author(session, run_id, lineage)


async def sees_only_status(request: Request, session: AsyncSession, run_id: UUID) -> bool:
    """Whether a run that was created before may be answered by no more than its status: to a training job's key.

    Raises:
        RunIdTaken: Where another key has created it.
    """
    principal = principal_of(request)
    if not principal.reads_only_its_own:
        return False
    if not await api_keys.is_author(session, run_id, principal.lineage):
        raise RunIdTaken(run_id)
    return True


def named(request: Request) -> Iterator[tuple[Kind, UUID | str]]:
    """What path and query name; ids that are no UUIDs are left to the endpoint, which refuses them."""
    pairs = [*request.path_params.items(), *request.query_params.multi_items()]
    for parameter, value in pairs:
        kind = NAMED_BY.get(parameter)
        if kind is None:
            continue
        text = str(value)
        if kind == "project":
            if "\x00" not in text:
                yield kind, text
            continue
        try:
            yield kind, UUID(text)
        except ValueError:
            continue


def principal_of(request: Request) -> Principal:
    """Who asks.

    Raises:
        NotAuthenticated: When the gate has let nobody in.
    """
    principal = getattr(request.state, "principal", None)
    if not isinstance(principal, Principal):
        raise NotAuthenticated
    return principal


def sessions_of(request: Request) -> async_sessionmaker[AsyncSession]:
    """Sessions that see what this request may see."""
    factory: async_sessionmaker[AsyncSession] = request.app.state.sessions
    return async_sessionmaker(**{**factory.kw, "info": seen_by(request)})


def not_found(kind: Kind, name: UUID | str) -> DomainError:
    """The error for something that is not there, or not for this principal: nobody can tell which."""
    match kind, name:
        case "run", UUID():
            return RunNotFound(name)
        case "stream", UUID():
            return StreamNotFound(name)
        case "sweep", UUID():
            return SweepNotFound(name)
        case "reproduction", UUID():
            return ReproductionNotFound(name)
        case _:
            return ProjectNotFound(str(name))


def words(right: Right | None) -> str:
    """What the right is to do, for a sentence."""
    return "something that no rule grants" if right is None else right.value.replace("_", " ")


async def _is_own(session: AsyncSession, principal: Principal, kind: Kind, name: UUID | str) -> bool:
    run_id = name if kind == "run" else None
    if kind == "stream" and isinstance(name, UUID):
        run_id = await belonging.run_of_stream(session, name)
    return isinstance(run_id, UUID) and await api_keys.is_author(session, run_id, principal.lineage)


def _belonging(request: Request) -> Belonging:
    known: Belonging = request.app.state.belonging
    return known


async def get_asking(request: Request) -> Principal:
    """The same, as what an endpoint depends on."""
    return principal_of(request)


Asking = Annotated[Principal, Depends(get_asking)]
