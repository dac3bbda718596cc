"""Where a distributed Postgres keeps each table: all of a run on one node, small tables on every node.

With the extension Citus a table is distributed by its run, together with all others of the run, or it is a reference
table. On one Postgres nothing is done.
"""

from sqlalchemy import Connection, MetaData, text
from sqlalchemy import Table as SqlTable

BY_RUN = {"run": "id"}
"""Tables of a run whose key does not begin with `run_id`."""

_HAS_CITUS = text("SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'create_distributed_table')")
_PLACED = text("SELECT logicalrelid::text FROM pg_dist_partition")
_ONE_AFTER_THE_OTHER = text("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
_DISTRIBUTE = text("SELECT create_distributed_table(CAST(:name AS text)::regclass, :column, colocate_with => :beside)")
_REPEAT = text("SELECT create_reference_table(CAST(:name AS text)::regclass)")
_OF_ANY_RUN = (
    # a unique constraint on a distributed table has to hold the column that it is distributed by
    text("ALTER TABLE stream DROP CONSTRAINT IF EXISTS uq_stream_id"),
    text("CREATE INDEX IF NOT EXISTS ix_stream_id ON stream (id)"),
)


def place(connection: Connection, metadata: MetaData) -> None:
    """Place every table that has no place yet, those first that others refer to; where there is no Citus, nothing.

    Args:
        connection: In the transaction that has created the tables.
        metadata: All tables.
    """
    if not connection.scalar(_HAS_CITUS):
        return
    placed = set(connection.scalars(_PLACED))
    # tables refer to reference tables: their changes have to be seen on one connection a node
    connection.execute(_ONE_AFTER_THE_OTHER)
    for table in metadata.sorted_tables:
        if table.name in placed:
            continue
        column = column_of_run(table)
        if column is None:
            connection.execute(_REPEAT, {"name": table.name})
            continue
        if table.name == "stream":
            for statement in _OF_ANY_RUN:
                connection.execute(statement)
        beside = "default" if table.name in BY_RUN else "run"
        connection.execute(_DISTRIBUTE, {"name": table.name, "column": column, "beside": beside})


def column_of_run(table: SqlTable) -> str | None:
    """The column that says whose run a row is; None for tables that belong to no run."""
    first = next(iter(table.primary_key.columns)).name
    return BY_RUN.get(table.name) or ("run_id" if first == "run_id" else None)
