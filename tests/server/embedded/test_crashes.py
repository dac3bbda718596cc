"""The owner dies, Postgres dies, or a pid comes back as another program."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil
import pytest

from noisescale_server.embedded import EmbeddedPostgres, binaries, cluster, launch, postmaster_pid, programs
from noisescale_server.embedded.privileges import postgres_identity

pytestmark = pytest.mark.processes


async def last_written(postgres: EmbeddedPostgres) -> int:
    connection = await asyncpg.connect(postgres.url(driver="postgresql"))
    try:
        return await connection.fetchval("SELECT max(number) FROM written")
    finally:
        await connection.close()


@pytest.mark.slow
def test_postgres_stops_by_itself_when_its_owner_is_killed(data_dir, start_owner):
    owner = start_owner(data_dir)

    owner.kill()

    owner.postmaster.wait(timeout=10)
    assert not owner.postmaster.is_running()


@pytest.mark.slow
async def test_no_acknowledged_row_is_lost_when_the_owner_is_killed(data_dir, start_owner):
    owner = start_owner(data_dir)
    acknowledged = owner.acknowledged(200)

    acknowledged = max(acknowledged, owner.kill())
    with EmbeddedPostgres(data_dir) as postgres:  # at once: the orphan may still be stopping
        kept = await last_written(postgres)

    assert kept >= acknowledged


@pytest.mark.slow
async def test_no_acknowledged_row_is_lost_when_postgres_and_its_owner_are_killed(data_dir, start_owner):
    owner = start_owner(data_dir)
    acknowledged = owner.acknowledged(200)

    owner.kill_postmaster()
    acknowledged = max(acknowledged, owner.kill())
    assert (data_dir / "cluster" / "postmaster.pid").exists()
    with EmbeddedPostgres(data_dir) as postgres:
        kept = await last_written(postgres)

    assert kept >= acknowledged
    assert not owner.socket_folder().exists()


@pytest.mark.slow
async def test_a_postgres_whose_readers_are_killed_while_it_recovers_answers_afterwards(data_dir: Path) -> None:
    """Postgres 18.4 with reader processes hands pages to the dead ones from then on: every session waits for ever."""
    with EmbeddedPostgres(data_dir) as postgres:
        session = await asyncpg.connect(postgres.url(driver="postgresql"))
        await session.execute("CREATE TABLE something_to_recover AS SELECT generate_series(1, 100000)")
        backend = psutil.Process(session.get_server_pid())
        postmaster = backend.parent()
        assert postmaster is not None
        before = {child.pid for child in postmaster.children()}

        backend.kill()
        kill_new_readers(postmaster, before, seconds=0.5)
        session.terminate()

        assert await last_of_a_catalog(postgres) > 0


def kill_new_readers(postmaster: psutil.Process, before: Set[int], *, seconds: float) -> None:
    """Two of them, those that were started for the recovery, if there are any."""
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and len(killed) < 2:
        for child in postmaster.children():
            with suppress(psutil.NoSuchProcess):
                if child.pid not in before | killed and "io worker" in " ".join(child.cmdline()):
                    time.sleep(0.03)  # it has said by then that it is there
                    child.kill()
                    killed.add(child.pid)
                    break


async def last_of_a_catalog(postgres: EmbeddedPostgres) -> int:
    async with asyncio.timeout(20):
        while True:
            with suppress(asyncpg.PostgresError, ConnectionError):
                connection = await asyncpg.connect(postgres.url(driver="postgresql"))
                found = await connection.fetchval("SELECT max(attnum) FROM pg_attribute")
                await connection.close()
                return int(found)
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_reused_pid_in_the_pid_file_is_neither_believed_nor_killed(data_dir, start_owner):
    """Same user and alive: Postgres itself would refuse to start over this one."""
    owner = start_owner(data_dir)
    owner.kill_postmaster()
    owner.kill()
    stranger = programs.start(
        ["/bin/sleep", "60"],
        identity=postgres_identity(),
        death_signal=signal.SIGKILL,
        output=subprocess.DEVNULL,
    )
    pid_file = data_dir / "cluster" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")

    with EmbeddedPostgres(data_dir) as postgres:
        is_stranger_alive = stranger.poll() is None
        new_pid = postgres.pid
    stranger.kill()
    stranger.wait()

    assert is_stranger_alive
    assert new_pid != stranger.pid


@pytest.mark.slow
def test_a_postgres_that_outlived_its_owner_is_stopped_first(data_dir):
    """Without a death signal, as on macOS, it goes on; it is told by its command line."""
    arguments = cluster.postmaster_arguments(
        data_dir / "cluster", binaries.locate(), socket_folder=data_dir / "cluster", port=1, durable=True
    )
    orphan = programs.start(
        arguments, identity=postgres_identity(), death_signal=signal.SIGKILL, output=subprocess.DEVNULL
    )
    while postmaster_pid.postmaster_of(data_dir / "cluster") is None:
        time.sleep(0.01)

    with EmbeddedPostgres(data_dir) as postgres:
        exit_code = orphan.wait(timeout=10)
        pid = postgres.pid

    assert exit_code == 0
    assert pid != orphan.pid


def test_a_stale_ready_is_not_taken_for_the_new_postgres(tmp_path):
    """In a restarted container the new postmaster often has the pid of the old one."""
    pid_file = tmp_path / "postmaster.pid"
    pid_file.write_text("1\n/data\n1763647820\n5432\n/tmp/s\n\n  5432001 12\nready   \n")

    launch._take_over_pid_file(pid_file)

    assert pid_file.read_text() == f"{os.getpid()}\n/data\n1763647820\n5432\n/tmp/s\n\n  5432001 12\n"
    assert postmaster_pid.read(tmp_path) == postmaster_pid.PidFile(pid=os.getpid(), status=None)
