from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.migrating import migrations_folder
from noisescale_server.storage.tables import NUM_MEASUREMENT_PARTITIONS


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


async def test_every_measurement_has_a_partition_to_go_to(session: AsyncSession) -> None:
    partitions = await session.scalar(
        text("SELECT count(*) FROM pg_inherits WHERE inhparent = 'measurement'::regclass")
    )

    assert partitions == NUM_MEASUREMENT_PARTITIONS


async def test_run_id_leads_every_key_but_those_of_project_task_and_run(session: AsyncSession) -> None:
    rows = await session.execute(
        text(
            "SELECT conrelid::regclass::text, (SELECT attname FROM pg_attribute a"
            " WHERE a.attrelid = c.conrelid AND a.attnum = c.conkey[1]) FROM pg_constraint c"
            " WHERE contype = 'p' AND conparentid = 0 AND connamespace = 'public'::regnamespace"
        )
    )
    leading = dict(rows.all())
    small = {"alembic_version", "project", "task", "run"}

    assert {table for table, column in leading.items() if column != "run_id"} == small
