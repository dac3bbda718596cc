"""A server works as a role that changes no table: what gets in through a query gets no further than the rows."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from noisescale_server.cli import upkeep
from noisescale_server.cli.commands import DatabaseNotReadyError, bring_up_to_date
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process import app_role
from noisescale_server.process.migrating import migrations_folder
from noisescale_server.process.settings import Settings
from noisescale_server.storage.platform.engine import create_engine

OLD_REVISION = "5a1c0e7d2b09"

FORBIDDEN = (
    "CREATE TABLE mine (id int)",
    "CREATE SCHEMA mine",
    "DROP TABLE run",
    "TRUNCATE run",
    "ALTER TABLE run ADD COLUMN mine int",
    "CREATE INDEX ON run (name)",
    "CREATE ROLE mine SUPERUSER",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY run TO '/tmp/stolen'",
    "SELECT pg_read_file('postgresql.conf')",
    "UPDATE alembic_version SET version_num = 'mine'",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE c AS '/lib/libc.so'",
)


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> str:
    name = f"empty_{uuid4().hex[:8]}"
    postgres.create_database(name)
    return postgres.url(name)


async def refused(url: str, statement: str) -> str | None:
    """The SQLSTATE with which this is refused."""
    engine = create_engine(url, pool_size=1)
    try:
        async with engine.begin() as connection:
            await connection.execute(text(statement))
    except DBAPIError as error:
        return str(getattr(error.orig, "sqlstate", None))
    finally:
        await engine.dispose()
    return None


async def run_as(url: str, *statements: str) -> None:
    for statement in statements:
        assert await refused(url, statement) is None, statement


def migrate_to(url: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, revision)


@pytest.mark.parametrize("statement", FORBIDDEN)
async def test_the_role_of_servers_changes_no_table_and_runs_no_program(database_url: str, statement: str) -> None:
    assert make_url(database_url).username == app_role.EMBEDDED_ROLE, "all tests of the server work as this role"
    assert await refused(database_url, statement) == "42501"


def test_an_embedded_database_is_served_as_a_role_of_its_own(empty_database: str) -> None:
    app_url = bring_up_to_date(Settings(), empty_database)
    again = bring_up_to_date(Settings(), empty_database)

    assert make_url(app_url).username == "noisescale_app"
    assert app_url == again


def test_elsewhere_the_owner_is_named_apart_and_makes_the_role(empty_database: str) -> None:
    role = f"app_{uuid4().hex[:8]}"
    app_url = make_url(empty_database).set(username=role, password="it's %s").render_as_string(hide_password=False)
    settings = Settings(database_url=app_url, migration_database_url=empty_database)

    with upkeep.kept_database(settings) as database_url:
        assert bring_up_to_date(settings, database_url) == app_url
    assert upkeep.audit(settings) == 0


async def test_an_owner_who_makes_no_roles_says_what_to_do(empty_database: str) -> None:
    owner = f"owner_{uuid4().hex[:8]}"
    await run_as(empty_database, f"CREATE ROLE {owner} LOGIN", f"GRANT CREATE ON SCHEMA public TO {owner}")
    owner_url = make_url(empty_database).set(username=owner).render_as_string(hide_password=False)

    with pytest.raises(app_role.NoRoleError, match=r"has no role 'missing'.*CREATE ROLE missing LOGIN"):
        await app_role._admit(make_url(owner_url), "missing", "")


def test_a_server_without_the_owner_starts_where_nothing_is_to_be_migrated(empty_database: str) -> None:
    bring_up_to_date(Settings(), empty_database)
    app_url = app_role.address(empty_database)

    assert bring_up_to_date(Settings(database_url=app_url), app_url) == app_url


def test_a_schema_that_is_too_old_is_left_to_its_owner(empty_database: str, new_database: Callable[[], str]) -> None:
    new_database()  # the role is there
    migrate_to(empty_database, OLD_REVISION)
    app_role.admit(empty_database, app_role.address(empty_database))
    settings = Settings(database_url=app_role.address(empty_database))

    with pytest.raises(DatabaseNotReadyError, match="name their owner in NOISESCALE_MIGRATION_DATABASE_URL"):
        bring_up_to_date(settings, app_role.address(empty_database))


async def test_a_backup_is_read_where_the_role_is_not_known(
    database_url: str, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    """Roles belong to a cluster: a backup that named them could be read nowhere else."""
    file = tmp_path / "backup"
    assert await asyncio.to_thread(upkeep.back_up, Settings(database_url=database_url), file=file) == 0

    assert b"GRANT" not in file.read_bytes()
