"""Reads a project's rows table by table in one snapshot, and puts them into another database in one transaction."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import asyncpg
from sqlalchemy import Table as SqlTable
from sqlalchemy import make_url

from noisescale_server.storage import baselines, comments, defaults, reproductions, views
from noisescale_server.storage.alerts import rows as alerts
from noisescale_server.storage.platform import row_tables
from noisescale_server.storage.platform.tables import Table
from noisescale_server.storage.retention import rows as retention

# Which rows are a project's, in the order in which they can be put into a database again.

_ROOMS = (
    alerts,
    baselines,
    comments,
    defaults,
    reproductions,
    retention,
    row_tables,
)
assert all((*_ROOMS, views)), "their classes belong to the same metadata"

OF_PROJECT: Final = {
    "project": "id = $1::uuid",
    "task": "project_id = $1::uuid",
    "project_default": "project_id = $1::uuid",
    "project_retention": "project_id = $1::uuid",
    "saved_view": "project_id = $1::uuid",
    "run": "project_id = $1::uuid",
    "project_baseline": "project_id = $1::uuid",
    "sweep": "project_id = $1::uuid",
    "sweep_run": "sweep_id IN (SELECT id FROM sweep WHERE project_id = $1::uuid)",
    "calibration": "project_id = $1::uuid",
    "reproduction": "project_id = $1::uuid",
}
"""Small tables: the condition that chooses the rows of project $1."""

OF_RUN: Final = (
    "stream_place",
    "stream",
    "stream_loss",
    "late_arrival",
    "run_comment",
    "measurement",
    "metric",
    "group_measurement",
    "rollup",
    "group_rollup",
)
"""Tables whose rows are read run by run: together they may be larger than memory."""

NAMES: Final = (*OF_PROJECT, *OF_RUN)
"""All of them. People, keys, alerts and the audit log belong to a server, and stay there."""


def table_of(name: str) -> SqlTable:
    """The mapped table of this name."""
    return Table.metadata.tables[name]


def columns_of(name: str) -> tuple[str, ...]:
    """Its columns, in order."""
    return tuple(column.name for column in table_of(name).columns)


def key_of(name: str) -> tuple[str, ...]:
    """The columns of its key."""
    return tuple(column.name for column in table_of(name).primary_key)


ROWS_AT_ONCE: Final = {"group_measurement": 250, "sweep_run": 100, "run": 250}
"""Of tables with long rows; of the others 5,000 travel at once."""
MOST_ROWS_AT_ONCE: Final = 5_000
RUN_BY_RUN: Final = frozenset(OF_RUN) | {"run"}

Row = Sequence[Any]
Connection = Any
"""Of asyncpg, whose methods have no types."""


@asynccontextmanager
async def connected(database_url: str) -> AsyncIterator[Connection]:
    """A connection that waits for long statements: a project may take minutes."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    connection = await asyncpg.connect(url, server_settings={"statement_timeout": "0", "timezone": "UTC"})  # type: ignore[no-untyped-call]
    try:
        yield connection
    finally:
        await connection.close()


async def project_id(connection: Connection, name: str) -> UUID | None:
    """The project of this name, or None."""
    found: UUID | None = await connection.fetchval("SELECT id FROM project WHERE name = $1", name)
    return found


async def run_ids(connection: Connection, project: UUID) -> list[UUID]:
    """Its runs."""
    return [row[0] for row in await connection.fetch("SELECT id FROM run WHERE project_id = $1 ORDER BY id", project)]


async def parts(connection: Connection, table: str, project: UUID, runs: Sequence[UUID]) -> AsyncIterator[list[Row]]:
    """The project's rows of a table along its key, some at a time; inside a transaction."""
    columns, order = ", ".join(columns_of(table)), ", ".join(key_of(table))
    if table in OF_PROJECT:
        condition, owners = OF_PROJECT[table], [project]
    else:
        # one run is one node's of a distributed Postgres, and its key's order needs no sort
        condition, owners = "run_id = $1::uuid", list(runs)
    statement = f"SELECT {columns} FROM {table} WHERE {condition} ORDER BY {order}"  # noqa: S608 - names of our own
    size = ROWS_AT_ONCE.get(table, MOST_ROWS_AT_ONCE)
    for owner in owners:
        cursor = await connection.cursor(statement, owner)
        while found := await cursor.fetch(size):
            yield found


async def known(connection: Connection, table: str, ids: Collection[UUID]) -> set[UUID]:
    """Those of the ids that a table has."""
    statement = f"SELECT id FROM {table} WHERE id = ANY ($1::uuid[])"  # noqa: S608 - names of our own
    return {row[0] for row in await connection.fetch(statement, list(ids))}


async def put(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> int:
    """Put rows in; how many are new. Those of runs must be, of other tables what is there stays."""
    if table in RUN_BY_RUN:
        await connection.copy_records_to_table(table, records=rows, columns=list(columns))
        return len(rows)
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) "  # noqa: S608 - names of our own
        "ON CONFLICT DO NOTHING RETURNING 1"
    )
    return sum([len(await connection.fetch(statement, *row)) for row in rows])


async def task_ids(connection: Connection, project: UUID) -> dict[str, UUID]:
    """The project's tasks by name."""
    rows = await connection.fetch("SELECT name, id FROM task WHERE project_id = $1", project)
    return {row[0]: row[1] for row in rows}
