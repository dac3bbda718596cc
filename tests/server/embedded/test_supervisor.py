import os
import stat
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from noisescale_server.embedded import (
    DataFolderInUseError,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    PostgresFailedError,
    WrongThreadError,
)

pytestmark = pytest.mark.processes


async def value(postgres: EmbeddedPostgres, query: str, database: str = "noisescale") -> object:
    connection = await asyncpg.connect(postgres.url(database, driver="postgresql"))
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def socket_folder_of(postgres: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(postgres.url()).query)["host"][0])


async def test_a_new_cluster_is_durable_utf8_and_without_a_tcp_port(data_dir):
    names = ("listen_addresses", "server_encoding", "fsync", "synchronous_commit", "full_page_writes", "TimeZone")

    with EmbeddedPostgres(data_dir) as postgres:
        shown = [await value(postgres, f"SHOW {name}") for name in names]

    assert shown == ["", "UTF8", "on", "on", "on", "UTC"]


def test_half_a_cluster_of_a_killed_first_start_is_gone(data_dir):
    assert [file.name for file in data_dir.glob("cluster*")] == ["cluster"]


async def test_warm_start_finds_what_was_committed(data_dir):
    with EmbeddedPostgres(data_dir) as postgres:
        await value(postgres, "CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS number")

    with EmbeddedPostgres(data_dir) as postgres:
        assert await value(postgres, "SELECT number FROM kept") == 7


async def test_the_url_serves_sqlalchemy_as_it_is(data_dir, monkeypatch):
    monkeypatch.setenv("PGPORT", "1")  # asyncpg would take it for the port that a URL leaves out

    with EmbeddedPostgres(data_dir) as postgres:
        engine = create_async_engine(postgres.url())
        async with engine.connect() as connection:
            answer = await connection.scalar(text("SELECT current_database()"))
        await engine.dispose()

    assert answer == "noisescale"


async def test_the_socket_is_in_a_private_folder_that_goes_when_postgres_stops(data_dir):
    with EmbeddedPostgres(data_dir) as postgres:
        folder = socket_folder_of(postgres)
        mode = stat.S_IMODE(folder.stat().st_mode)
        sockets = [file.name for file in folder.iterdir() if file.is_socket()]

    assert mode == 0o700
    assert sockets == [".s.PGSQL.5432"]
    assert not folder.exists()


async def test_paths_may_hold_spaces_and_percent_signs(data_dir, open_folder, monkeypatch):
    odd = data_dir.rename(data_dir.with_name("my data, 100 % ü"))
    temporary = open_folder / "tmp 1%20"
    temporary.mkdir()
    temporary.chmod(0o711)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    with EmbeddedPostgres(odd) as postgres:
        folder = socket_folder_of(postgres)
        answer = await value(postgres, "SHOW data_directory")
    odd.rename(data_dir)

    assert answer == str(odd / "cluster")
    assert folder.parent == temporary


async def test_a_long_temporary_folder_is_passed_over_for_a_short_one(data_dir, open_folder, monkeypatch):
    long = open_folder / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    with EmbeddedPostgres(data_dir) as postgres:
        assert len(bytes(socket_folder_of(postgres))) < 80


def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_the_way_out(data_dir, start_owner):
    first = start_owner(data_dir)

    with pytest.raises(DataFolderInUseError, match=f"process {first.process.pid}.* set NOISESCALE_DATA_DIR") as refused:
        EmbeddedPostgres(data_dir).start()

    assert "\n" not in str(refused.value)
    assert first.acknowledged(3) > 0


async def test_a_throw_away_server_copies_databases_and_leaves_nothing():
    with EmbeddedPostgres.throw_away() as postgres:
        data_directory = Path(str(await value(postgres, "SHOW data_directory")))
        await value(postgres, "CREATE TABLE here AS SELECT 1 AS number")
        postgres.create_database("copy of it", template="noisescale")
        copied = await value(postgres, "SELECT number FROM here", database="copy of it")
        postgres.drop_database("copy of it")
        databases = await value(postgres, "SELECT count(*) FROM pg_database WHERE datname = 'copy of it'")

    assert (copied, databases) == (1, 0)
    assert not data_directory.parent.exists()


def test_postgres_is_out_of_reach_of_the_terminals_ctrl_c(data_dir):
    with EmbeddedPostgres(data_dir) as postgres:
        assert os.getpgid(postgres.pid) != os.getpgid(0)


def test_starting_off_the_main_thread_is_refused(data_dir):
    """The kernel's death signal follows the thread: Postgres would stop with it."""
    errors = []

    def start():
        try:
            EmbeddedPostgres(data_dir).start()
        except EmbeddedPostgresError as error:
            errors.append(error)

    thread = threading.Thread(target=start, name="helper")
    thread.start()
    thread.join()

    assert [type(error) for error in errors] == [WrongThreadError]
    assert "helper" in str(errors[0])


def test_a_start_that_fails_shows_the_last_lines_and_lets_go_of_the_folder(data_dir):
    version = data_dir / "cluster" / "PG_VERSION"
    version.write_text("9.6\n")

    with pytest.raises(PostgresFailedError, match=r"(?s)exit code 1.*postgres\.log.*incompatible with server"):
        EmbeddedPostgres(data_dir).start()

    version.write_text("18\n")
    with EmbeddedPostgres(data_dir) as postgres:
        assert postgres.pid


def test_what_is_not_running_says_so_and_can_be_stopped_again(data_dir):
    postgres = EmbeddedPostgres(data_dir)

    postgres.stop()

    with pytest.raises(RuntimeError, match=r"not running: call start\(\) first"):
        postgres.url()
