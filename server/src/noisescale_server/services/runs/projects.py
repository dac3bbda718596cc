"""Projects and what is in them."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.runs import queries as run_queries


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project, how many runs it has, archived ones included, and its task names in order."""

    name: str
    num_runs: int
    tasks: tuple[str, ...]


async def list_all(session: AsyncSession) -> list[ProjectSummary]:
    """Every project, by name."""
    found = await run_queries.count_by_project(session)
    return [ProjectSummary(name, num_runs, tuple(tasks)) for name, num_runs, tasks in found]
