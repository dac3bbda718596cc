"""A database with data, placed by the release before where it is several nodes, is brought up to date."""

import asyncio
import math
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, inspect
from sqlalchemy.ext.asyncio import create_async_engine

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrations_folder
from noisescale_server.storage.platform.engine import async_url
from noisescale_server.storage.platform.placement import place
from noisescale_server.storage.platform.tables import Table

BEFORE_LISTS = "5a1c0e7d2cb0"
RUN = """
INSERT INTO run (id, project_id, task_id, name, tags, updated_at, noise_scale_state, noise_scale_value,
  latest_global_batch)
VALUES ($1, $2, $3, $4, $5, '2026-01-01', $6, 800, 100)
"""
TRIAL = """
INSERT INTO sweep_run (run_id, sweep_id, is_stored, batch_size, lr, status, created_at)
VALUES ($1, $2, $3, 32, 0.1, 'complete', $4::text::timestamptz)
"""


def config_of(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


async def placed(url: str) -> None:
    """As `noisescale migrate` of that release left it."""

    def put(connection: Connection) -> None:
        there = set(inspect(connection).get_table_names())
        of_then = MetaData()  # tables that came later are not there to be placed
        for table in Table.metadata.sorted_tables:
            if table.name in there:
                table.to_metadata(of_then)
        place(connection, of_then)

    engine = create_async_engine(async_url(url))
    try:
        async with engine.begin() as connection:
            await connection.run_sync(put)
    finally:
        await engine.dispose()


@pytest.fixture
async def before(postgres: EmbeddedPostgres) -> tuple[Config, str]:
    """A database of the release before its lists had indexes."""
    name = f"upgraded_{uuid4().hex[:8]}"
    await asyncio.to_thread(postgres.create_database, name)
    config = config_of(postgres.url(name))
    await asyncio.to_thread(command.upgrade, config, BEFORE_LISTS)
    await placed(postgres.url(name))
    return config, postgres.url(name, driver="postgresql")


async def test_runs_of_the_release_before_are_in_the_indexes_of_lists(before: tuple[Config, str]) -> None:
    config, url = before
    connection = await asyncpg.connect(url)
    project = await connection.fetchval("INSERT INTO project (name) VALUES ('demo') RETURNING id")
    task = await connection.fetchval("INSERT INTO task (project_id, name) VALUES ($1, 'digits') RETURNING id", project)
    first, second = uuid4(), uuid4()
    runs: dict[str, Any] = {}
    for name, tags, state in (
        ("swept", ["reproduce"], "resolved"),
        ("reproduced", ["reproduce"], "tentative"),
        ("alone", [], "resolved"),
    ):
        runs[name] = uuid4()
        await connection.execute(RUN, runs[name], project, task, name, tags, state)
    await connection.execute(TRIAL, runs["swept"], second, True, "2026-01-02")
    await connection.execute(TRIAL, runs["swept"], first, True, "2026-01-01")
    await connection.execute(TRIAL, runs["alone"], first, False, "2026-01-01")

    await asyncio.to_thread(command.upgrade, config, "head")

    await connection.reload_schema_state()
    found = {
        row["name"]: (row["trial_of"], row["misfit"], row["is_so"])
        for row in await connection.fetch("SELECT name, trial_of, misfit, heard_at = updated_at AS is_so FROM run")
    }
    await connection.close()
    eightfold = pytest.approx(math.log(8))
    assert found == {
        "swept": (first, eightfold, True),
        "reproduced": (task, None, True),
        "alone": (None, eightfold, True),
    }
