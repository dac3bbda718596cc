"""How much each project has stored: runs, records, and its part of the database's size."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.visibility import projects_of
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.driver import read

MOST_PROJECTS = 200

# Records are counted where they arrive, stream by stream: counting rows would read all of them.
_STORED = """
WITH records AS (
  SELECT run.project_id, sum(stream.num_stored)::bigint AS num FROM stream JOIN run ON run.id = stream.run_id
  GROUP BY run.project_id
), runs AS (
  SELECT project_id, count(*) AS num FROM run GROUP BY project_id
), whole AS (
  SELECT greatest(coalesce(sum(num), 0), 1) AS records FROM records
)
SELECT project.name AS project, coalesce(records.num, 0) AS num_records, coalesce(runs.num, 0) AS num_runs,
  ($3::bigint * coalesce(records.num, 0) / whole.records)::bigint AS num_bytes
FROM project CROSS JOIN whole LEFT JOIN records ON records.project_id = project.id
LEFT JOIN runs ON runs.project_id = project.id
WHERE $1::uuid[] IS NULL OR project.id = ANY($1::uuid[])
ORDER BY num_records DESC, project.name LIMIT $2::bigint"""

_BYTES = """
SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS bytes FROM pg_stat_user_tables
WHERE schemaname = current_schema()"""
# of all nodes; a table of runs is empty at the coordinator
_BYTES_OF_NODES = """
SELECT coalesce(sum(citus_total_relation_size(logicalrelid, fail_on_error => false)), 0)::bigint AS bytes
FROM pg_dist_partition"""

_DATABASE = "SELECT current_setting('server_version') AS version"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a project has stored.

    Attributes:
        project: Its name.
        num_runs: Archived ones too.
        num_records: That its jobs have sent.
        num_bytes: Of the database, in proportion to the records.
    """

    project: str
    num_runs: int
    num_records: int
    num_bytes: int


async def by_project(session: AsyncSession) -> list[Stored]:
    """The projects that the session sees, those with most records first; 200 at most.

    Args:
        session: Sees the projects that count.
    """
    measure = _BYTES_OF_NODES if await placement.is_distributed(session) else _BYTES
    num_bytes = (await read(session, measure))[0]["bytes"]
    rows = await read(session, _STORED, projects_of(session), MOST_PROJECTS, num_bytes)
    return [Stored(**dict(row)) for row in rows]


async def database_version(session: AsyncSession) -> str:
    """Which PostgreSQL answers, as it calls itself.

    Args:
        session: Any.
    """
    (row,) = await read(session, _DATABASE)
    return str(row["version"])
