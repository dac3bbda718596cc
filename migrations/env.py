"""Runs migrations over asyncpg: on the connection in `config.attributes`, or on a new one to the configured URL."""

import asyncio
import os
import re

from alembic import context
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from noisescale_server.storage import baselines, comments, defaults, reproductions, views
from noisescale_server.storage.access import tables as access_tables
from noisescale_server.storage.alerts import rows as alerts
from noisescale_server.storage.platform import row_tables
from noisescale_server.storage.platform.engine import async_url
from noisescale_server.storage.platform.placement import ONE_CONNECTION_A_NODE, place
from noisescale_server.storage.platform.tables import Table
from noisescale_server.storage.retention import rows as retention

assert access_tables, "its classes belong to the same metadata"
assert alerts, "the same"
assert baselines, "the same"
assert comments, "the same"
assert defaults, "the same"
assert reproductions, "the same"
assert retention, "the same"
assert row_tables, "the same"
assert views, "the same"

PARTITION = re.compile(r"measurement_p\d\d")


OF_EXPRESSIONS = {"ix_run_name_parts"}
"""Indexes that no class names: Postgres tells their expressions back in other words, and that looks like a change."""


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """False for partitions, which follow their parent and have no class, and for indexes of expressions."""
    return not (
        name is not None
        and ((kind == "table" and PARTITION.fullmatch(name)) or (kind == "index" and name in OF_EXPRESSIONS))
    )


def database_url() -> str:
    """The URL of the configuration, else of the environment."""
    url = context.config.get_main_option("sqlalchemy.url") or os.environ.get("NOISESCALE_DATABASE_URL")
    if not url:
        raise SystemExit("no database to migrate: set NOISESCALE_DATABASE_URL=postgresql://user@host/database")
    return url


def is_newest() -> bool:
    """Whether all tables are there: not after a step down, nor on the way."""
    return context.get_head_revision() == context.get_context().get_current_revision()


def migrate(connection: Connection) -> None:
    """All migrations in one transaction; a distributed Postgres then gives each new table its place."""
    context.configure(
        connection=connection, target_metadata=Table.metadata, include_name=is_ours, compare_server_default=True
    )
    with context.begin_transaction():
        # one migration may change a table of every node, and the next one a small table that it refers to
        connection.execute(ONE_CONNECTION_A_NODE)
        context.run_migrations()
        if is_newest():
            place(connection, Table.metadata)


async def connect_and_migrate() -> None:
    """One connection, closed afterwards."""
    engine = create_async_engine(async_url(database_url()), poolclass=pool.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
        await connection.commit()
    await engine.dispose()


given_connection = context.config.attributes.get("connection")
if given_connection is None:
    asyncio.run(connect_and_migrate())
else:
    migrate(given_connection)
