"""An embedded Postgres that is killed comes back by itself; one that cannot live ends noisescale with one sentence."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import psutil
import pytest

from factories import make_batch, make_measurements
from noisescale_server.embedded import EmbeddedPostgres, PostgresKeepsEndingError, keeper, kept_running
from served_app import free_port

pytestmark = [pytest.mark.slow, pytest.mark.processes]

ROWS = 10
TOKEN = "ns_a_kept_running_" + "t" * 40


async def number_of(postgres: EmbeddedPostgres, statement: str) -> int:
    """What a statement says, asked until somebody answers."""
    async with asyncio.timeout(30):
        while True:
            with suppress(asyncpg.PostgresError, ConnectionError, OSError):
                connection = await asyncpg.connect(postgres.url(driver="postgresql"))
                found = await connection.fetchval(statement)
                await connection.close()
                return int(found)
            await asyncio.sleep(0.05)


async def test_a_killed_postmaster_is_started_again_at_the_same_address_and_the_log_says_so(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with EmbeddedPostgres(data_dir) as postgres, kept_running(postgres):
        address, first = postgres.url(), postgres.pid
        os.kill(first, signal.SIGKILL)
        answer = await number_of(postgres, "SELECT 41 + 1")
        second = postgres.pid

        assert (answer, postgres.url()) == (42, address)
        assert second != first
    assert not psutil.pid_exists(second)
    assert "the embedded Postgres was killed by signal 9: starting it again in 0.1 s" in caplog.text
    assert "the embedded Postgres runs again after" in caplog.text


async def test_a_postgres_that_cannot_live_ends_the_program_with_one_sentence(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(keeper, "MAX_ENDS_IN_A_ROW", 3)
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    configuration = data_dir / "cluster" / "postgresql.auto.conf"
    was = configuration.read_text()
    try:
        with (  # noqa: PT012 - the failure comes when the block ends
            pytest.raises(PostgresKeepsEndingError) as failure,
            EmbeddedPostgres(data_dir) as postgres,
            kept_running(postgres),
        ):
            configuration.write_text("this is no setting\n")
            os.kill(postgres.pid, signal.SIGKILL)
            assert await asyncio.to_thread(ended.wait, 30)
    finally:
        configuration.write_text(was)
        signal.signal(signal.SIGTERM, before)

    said = str(failure.value)
    assert said.startswith("the embedded Postgres ended 3 times in a row, the last time it ended with exit code 1")
    assert "postgresql.auto.conf" in said


async def test_a_session_that_does_not_end_is_waited_out_and_named(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(keeper, "LONGEST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(keeper, "MAX_ENDS_IN_A_ROW", 2)
    caplog.set_level(logging.WARNING)
    with EmbeddedPostgres(data_dir) as postgres, kept_running(postgres):
        session = await asyncpg.connect(postgres.url(driver="postgresql"))
        pid = session.get_server_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            os.kill(postgres.pid, signal.SIGKILL)
            deadline = time.monotonic() + 30
            while caplog.text.count("what is left of the last embedded Postgres still runs") < 4:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
        finally:
            os.kill(pid, signal.SIGCONT)
            session.terminate()

        assert await number_of(postgres, "SELECT 41 + 1") == 42

    assert f"still runs (processes {pid}) and keeps the next one out" in caplog.text
    assert "the embedded Postgres runs again after" in caplog.text


async def test_a_postgres_that_is_stopped_is_left_so(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedPostgres(data_dir) as postgres, kept_running(postgres):
        pid = postgres.pid

    assert not psutil.pid_exists(pid)
    assert "starting it again" not in caplog.text


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[str], Path]]:
    """A `noisescale up` of its own."""
    with tempfile.TemporaryDirectory(prefix="noisescale-test-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        port = free_port()
        environment = os.environ | {
            "NOISESCALE_DATA_DIR": f"{folder}/data",
            "NOISESCALE_DIR": str(tmp_path),
            "NOISESCALE_PORT": str(port),
            "NOISESCALE_LOCAL_TOKEN": TOKEN,
        }
        command = [str(Path(sys.executable).with_name("noisescale")), "up"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:
                until_ready(client, process)
                yield client, process, Path(folder) / "data" / "postgres" / "cluster" / "postmaster.pid"
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def until_ready(client: httpx.Client, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while True:
        with suppress(httpx.TransportError):
            if client.get("/readyz").status_code == 200:
                return
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ingestion_goes_on_over_three_kills_and_nothing_is_lost(
    served: tuple[httpx.Client, subprocess.Popen[str], Path],
) -> None:
    client, process, pid_file = served
    run_id, stream_id = uuid4(), uuid4()
    acked, refused = 0, 0
    for number in range(12):
        first = number * ROWS + 1
        rows = make_measurements(first_seq=max(2, first), steps=range(first, first + ROWS - (first == 1)))
        body = make_batch(run_id=run_id, first_seq=first, crc32=first, measurements=rows)
        if number in (3, 6, 9):
            os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
        deadline = time.monotonic() + 30
        while (answer := client.post(f"/api/v1/streams/{stream_id}/batches", json=body)).status_code != 200:
            assert answer.status_code == 503, answer.text
            assert time.monotonic() < deadline
            refused += 1
            time.sleep(0.05)
        acked = answer.json()["acked_seq"]

    stream = client.get(f"/api/v1/streams/{stream_id}").json()
    ledger = client.get(f"/api/v1/runs/{run_id}/streams").json()["ledger"]
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    said = process.stderr.read()

    assert refused >= 3
    assert acked == 12 * ROWS
    assert (stream["num_stored"], ledger["is_true"], ledger["num_lost"]) == (acked, True, 0), json.dumps(stream)
    assert said.count("was killed by signal 9: starting it again") == 3
