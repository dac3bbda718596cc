"""The one place where queries are kept to the projects that somebody may enter.

A session knows those projects; every statement that reads or changes projects, or runs, tasks, sweeps and reproductions
of one, through the mapped classes is narrowed to them, whoever wrote it. Statements in plain SQL take `projects_of` as
a parameter.
"""

from uuid import UUID

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from noisescale_server.storage.platform.tables import Calibration, Project, Run, Sweep, Task
from noisescale_server.storage.reproductions import Reproduction

KEY = "projects"
"""Under which a session's `info` holds its projects: a frozenset of ids, or None for all; without it, none."""

ONLY_RUN = "run"
"""Under which it holds the only run of these projects that may be seen; None or nothing: all of them."""


class ProjectSession(Session):
    """A session that sees some projects only."""


def projects_of(session: AsyncSession) -> list[UUID] | None:
    """The projects that this session sees; None: all of them, as in sessions that are no request's."""
    if not isinstance(session.sync_session, ProjectSession):
        return None
    projects: frozenset[UUID] | None = session.info.get(KEY, frozenset())
    return None if projects is None else sorted(projects)


@event.listens_for(ProjectSession, "do_orm_execute")
def narrow(state: ORMExecuteState) -> None:
    """Let the statement see the session's projects only."""
    if not (state.is_select or state.is_update or state.is_delete):
        return
    projects: frozenset[UUID] | None = state.session.info.get(KEY, frozenset())
    if projects is None:
        return
    seen = list(projects)
    only: UUID | None = state.session.info.get(ONLY_RUN)
    if only is not None:
        state.statement = state.statement.options(with_loader_criteria(Run, Run.id == only, include_aliases=True))
    state.statement = state.statement.options(
        with_loader_criteria(Project, Project.id.in_(seen), include_aliases=True),
        *(
            with_loader_criteria(table, table.project_id.in_(seen), include_aliases=True)
            for table in (Run, Task, Sweep, Calibration, Reproduction)
        ),
    )


def session_factory(engine: AsyncEngine) -> async_sessionmaker[AsyncSession]:
    """Sessions that keep loaded values after commit: an answer is shaped when the transaction is over.

    They see every project; those of a request see what its sender may (`api/platform/deps.py`).
    """
    return async_sessionmaker(engine, expire_on_commit=False, sync_session_class=ProjectSession, info={KEY: None})
