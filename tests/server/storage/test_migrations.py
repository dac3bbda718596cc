import asyncio

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrations_folder
from noisescale_server.storage.platform.row_tables import NUM_MEASUREMENT_PARTITIONS
from noisescale_server.storage.series import group_pyramid


def alembic_config(database_url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", database_url.replace("%", "%%"))
    return config


def test_models_and_migrations_agree_and_every_step_goes_down_and_up(postgres: EmbeddedPostgres) -> None:
    postgres.create_database("migrations")
    config = alembic_config(postgres.url("migrations"))

    command.upgrade(config, "head")
    command.check(config)
    command.downgrade(config, "base")
    command.upgrade(config, "head")

    command.check(config)


RUN_OF_THE_FIRST_RELEASE = """
INSERT INTO project (id, name) VALUES (gen_random_uuid(), 'demo');
INSERT INTO task (id, project_id, name) SELECT gen_random_uuid(), id, 'digits' FROM project;
INSERT INTO run (id, project_id, task_id, name) SELECT gen_random_uuid(), project_id, id, 'old' FROM task;
INSERT INTO stream (run_id, id, started_at, first_step)
  SELECT run.id, gen_random_uuid(), '2026-01-01'::timestamptz + day * interval '1 day', CASE day WHEN 1 THEN 0 END
  FROM run, generate_series(1, 2) AS day;
"""


async def test_a_run_of_the_first_release_knows_its_newest_stream_and_kinds(postgres: EmbeddedPostgres) -> None:
    postgres.create_database("old_runs")
    config = alembic_config(postgres.url("old_runs"))
    connection = await asyncpg.connect(postgres.url("old_runs", driver="postgresql"))
    await asyncio.to_thread(command.upgrade, config, "5a1c0e7d2b02")
    await connection.execute(RUN_OF_THE_FIRST_RELEASE)

    await asyncio.to_thread(command.upgrade, config, "head")

    found = await connection.fetchrow(
        "SELECT s.started_at = run.newest_started_at AS is_its_start, date_part('day', s.started_at) AS day,"
        " run.kinds, run.notes, run.noise_scale_flags FROM run JOIN stream s ON s.id = run.newest_stream_id"
    )
    await connection.close()
    assert tuple(found) == (True, 3.0, ["simple"], [], 0)


RECORDS_OF_LAYERS = """
INSERT INTO group_measurement (run_id, stream_id, seq, step, wall_time, names, num_updates, sum_trace_cov,
  sum_grad_sq_norm, sum_trace_cov_sq, sum_grad_sq_norm_sq, sum_trace_cov_grad_sq_norm)
SELECT '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002', i, 700 * i, i, ARRAY['a', 'b'],
  ARRAY[10, 5], ARRAY[i, NULL], ARRAY[2, NULL], ARRAY[3 * i, NULL], ARRAY[4, NULL], ARRAY[5, NULL]
FROM generate_series(1, 90) AS i
"""


async def test_records_of_layers_stored_before_are_in_the_pyramid_as_those_stored_since(
    postgres: EmbeddedPostgres,
) -> None:
    postgres.create_database("old_layers")
    config = alembic_config(postgres.url("old_layers"))
    connection = await asyncpg.connect(postgres.url("old_layers", driver="postgresql"))
    await asyncio.to_thread(command.upgrade, config, "5a1c0e7d2b20")
    await connection.execute(RECORDS_OF_LAYERS)

    await asyncio.to_thread(command.upgrade, config, "5a1c0e7d2b30")

    everything = "SELECT * FROM group_rollup ORDER BY run_id, stream_id, level, name, bucket"
    filled = await connection.fetch(everything)
    await connection.execute("DELETE FROM group_rollup")
    await connection.execute(group_pyramid.fold("SELECT * FROM group_measurement"))
    folded = await connection.fetch(everything)
    await connection.close()
    assert len(filled) > 100
    assert [dict(row) for row in filled] == [dict(row) for row in folded]


async def test_every_measurement_has_a_partition_to_go_to(session: AsyncSession) -> None:
    partitions = await session.scalar(
        text("SELECT count(*) FROM pg_inherits WHERE inhparent = 'measurement'::regclass")
    )

    assert partitions == NUM_MEASUREMENT_PARTITIONS


async def test_run_id_leads_every_key_but_those_of_small_tables_and_run(session: AsyncSession) -> None:
    rows = await session.execute(
        text(
            "SELECT conrelid::regclass::text, (SELECT attname FROM pg_attribute a"
            " WHERE a.attrelid = c.conrelid AND a.attnum = c.conkey[1]) FROM pg_constraint c"
            " WHERE contype = 'p' AND conparentid = 0 AND connamespace = 'public'::regnamespace"
        )
    )
    leading = dict(rows.all())
    of_access = {"person", "membership", "api_key", "web_session", "login_attempt", "audit"}
    small = (
        {"alembic_version", "project", "task", "run", "stream_place", "deleted_run", "epoch", "sweep", "calibration"}
        | of_access
        | {"project_default", "project_baseline", "project_retention", "public_project", "run_link", "saved_view"}
    )

    of_alerts = {f"alert_{name}" for name in ("rule", "episode", "receiver", "event", "delivery")}
    others = {"reproduction"} | of_alerts
    assert {table for table, column in leading.items() if column != "run_id"} == small | others
