"""Where a distributed Postgres keeps each table: all of a run on one node, small tables on every node.

With the extension Citus a table is distributed by its run, together with all others of the run, by its own id where it
is looked up by that alone, or it is a reference table. On one Postgres nothing is done.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, MetaData, Row, text
from sqlalchemy import Table as SqlTable
from sqlalchemy.ext.asyncio import AsyncSession

RUN = "run"
BY_ID = {RUN: "id", "stream_place": "stream_id"}
"""Tables whose rows are placed by a column of their own: those of a run's tables go where the run is."""

HAS_CITUS = text("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")
"""Whether the database is one of several nodes."""
_PLACED = text("SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod <> 'n' OR repmodel = 't'")
ONE_CONNECTION_A_NODE = text("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
"""In a transaction before all else: each node sees in order what is read and written; nothing to one Postgres."""
_DISTRIBUTE = text("SELECT create_distributed_table(CAST(:name AS text)::regclass, :column, colocate_with => :beside)")
_REPEAT = text("SELECT create_reference_table(CAST(:name AS text)::regclass)")
# a partition has its own copy of what its parent refers to
_KEYS = text(
    "SELECT conrelid::regclass::text AS of_table, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition"
    " FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace"
    " AND (conrelid::regclass::text = ANY(:names) OR confrelid::regclass::text = ANY(:names)) ORDER BY 1, 2"
)


def place(connection: Connection, metadata: MetaData) -> None:
    """Place every table that has no place yet, those first that others refer to; where there is no Citus, nothing.

    Args:
        connection: In the transaction that has created the tables.
        metadata: All tables.
    """
    if not connection.scalar(HAS_CITUS):
        return
    placed = set(connection.scalars(_PLACED))
    new = [table for table in metadata.sorted_tables if table.name not in placed]
    # tables refer to reference tables: their changes have to be seen on one connection a node
    connection.execute(ONE_CONNECTION_A_NODE)
    # a table that has no place cannot refer to one that has, nor the other way round
    keys = connection.execute(_KEYS, {"names": [table.name for table in new]}).all()
    _execute(connection, [f"ALTER TABLE {key.of_table} DROP CONSTRAINT {key.name}" for key in keys])
    # the table of runs before all that goes beside it, whether it refers to it or not
    for table in sorted(new, key=lambda table: table.name != RUN):
        _place(connection, table)
    _execute(connection, _added_again(keys))


async def is_distributed(session: AsyncSession) -> bool:
    """Whether the database is one of several nodes."""
    return bool(await session.scalar(HAS_CITUS))


async def one_connection_a_node(session: AsyncSession) -> None:
    """Until the transaction ends, let each node see in order what it reads and writes, so that small tables may change.

    For transactions that read runs of several nodes before that; on one Postgres it changes nothing.
    """
    await session.execute(ONE_CONNECTION_A_NODE)


def _place(connection: Connection, table: SqlTable) -> None:
    column = column_of_run(table)
    if column is None:
        connection.execute(_REPEAT, {"name": table.name})
        return
    beside = "none" if table.name in BY_ID else RUN
    connection.execute(_DISTRIBUTE, {"name": table.name, "column": column, "beside": beside})


def _added_again(keys: Sequence[Row[str, str, str]]) -> list[str]:
    return [f"ALTER TABLE {key.of_table} ADD CONSTRAINT {key.name} {key.definition}" for key in keys]


def _execute(connection: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(text(statement))


def column_of_run(table: SqlTable) -> str | None:
    """The column by which a table's rows are placed; None for tables that are on every node."""
    first = next(iter(table.primary_key.columns)).name
    return BY_ID.get(table.name) or ("run_id" if first == "run_id" else None)
