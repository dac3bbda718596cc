"""Tables find their places where Citus is; functions of its names stand in for it and write down what they are told."""

import asyncio

import asyncpg
import pytest

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.migrating import migrate
from noisescale_server.storage import access_tables, reproduction_table, row_tables
from noisescale_server.storage.tables import Table

STAND_IN = """
CREATE TABLE pg_dist_partition (place serial, logicalrelid regclass, by_column text, beside text);
CREATE FUNCTION create_distributed_table(named regclass, by_column text, colocate_with text) RETURNS void
  LANGUAGE sql AS 'INSERT INTO pg_dist_partition (logicalrelid, by_column, beside) VALUES ($1, $2, $3)';
CREATE FUNCTION create_reference_table(named regclass) RETURNS void
  LANGUAGE sql AS 'INSERT INTO pg_dist_partition (logicalrelid) VALUES ($1)';
"""
OF_A_RUN = {
    "stream", "stream_loss", "measurement", "rollup", "metric", "group_measurement", "group_rollup", "run_author",
    "sweep_run",
}  # fmt: skip
OF_ALL = {
    "project", "task", "sweep", "calibration", "epoch", "deleted_run", "audit", "person", "membership", "api_key",
    "web_session", "login_attempt", "reproduction",
}  # fmt: skip
assert access_tables, reproduction_table
assert row_tables


async def placed_after_migrating(postgres: EmbeddedPostgres, name: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(postgres.url(name, driver="postgresql"))
    found = await connection.fetch("SELECT logicalrelid::text AS name, by_column, beside FROM pg_dist_partition")
    unique = await connection.fetchval("SELECT count(*) FROM pg_constraint WHERE conname = 'uq_stream_id'")
    await connection.close()
    assert unique == 0, "a unique constraint without the run would be refused"
    return list(found)


@pytest.fixture
async def with_citus(postgres: EmbeddedPostgres) -> str:
    """The name of a database with the stand-in, before its first migration."""
    postgres.create_database("with_citus")
    connection = await asyncpg.connect(postgres.url("with_citus", driver="postgresql"))
    await connection.execute(STAND_IN)
    await connection.close()
    return "with_citus"


def test_every_table_is_of_a_run_or_of_all() -> None:
    assert {table.name for table in Table.metadata.sorted_tables} == OF_A_RUN | OF_ALL | {"run"}


async def test_each_table_is_placed_once_after_those_that_it_refers_to(
    postgres: EmbeddedPostgres, with_citus: str
) -> None:
    for _ in range(2):
        await asyncio.to_thread(migrate, postgres.url(with_citus))

    placed = await placed_after_migrating(postgres, with_citus)
    names = [row["name"] for row in placed]
    assert sorted(names) == sorted(OF_A_RUN | OF_ALL | {"run"})
    assert {row["name"] for row in placed if row["by_column"] == "run_id" and row["beside"] == "run"} == OF_A_RUN
    assert {row["name"] for row in placed if row["by_column"] is None} == OF_ALL
    assert [(row["by_column"], row["beside"]) for row in placed if row["name"] == "run"] == [("id", "default")]
    for table in Table.metadata.sorted_tables:
        for key in table.foreign_keys:
            assert names.index(key.column.table.name) < names.index(table.name)
