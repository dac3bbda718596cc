"""The role that servers work as is on every node, wherever it was made."""

from collections.abc import Callable
from uuid import uuid4

import asyncpg
from sqlalchemy import make_url

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process import app_role


async def test_a_role_that_was_made_beside_the_database_reads_and_writes_on_every_node(
    new_database: Callable[[], str], postgres: EmbeddedPostgres
) -> None:
    role, name = f"app_{uuid4().hex[:8]}", str(make_url(new_database()).database)
    elsewhere = await asyncpg.connect(postgres.url("postgres", driver="postgresql"))
    await elsewhere.execute(f"CREATE ROLE {role} LOGIN")
    await elsewhere.close()

    await app_role._admit(make_url(postgres.url(name)), role, "")

    connection = await asyncpg.connect(app_role.address(postgres.url(name, driver="postgresql"), role))
    project = await connection.fetchval("INSERT INTO project (name) VALUES ('demo') RETURNING id")
    task = await connection.fetchval("INSERT INTO task (project_id, name) VALUES ($1, 'digits') RETURNING id", project)
    for _ in range(8):
        await connection.execute(
            "INSERT INTO run (id, project_id, task_id, name) VALUES ($1, $2, $3, 'a run')", uuid4(), project, task
        )
    num_runs = await connection.fetchval("SELECT count(*) FROM run")
    await connection.close()
    assert num_runs == 8
