"""A server is killed inside its Nth write of a batch, for every N, and after COMMIT: sent again, it is stored once."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from factories import make_batch, make_measurements
from places import with_support
from served_app import free_port
from torture.nursery import Forked, Nursery

NUM_ROWS = 20
WHOLE = list(range(2, NUM_ROWS + 2))
WRITES = ("write", "writev", "sendto", "sendmsg")
"""What asyncio and uvloop hand bytes to Postgres and to the client with."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may trace a process that is not its child"),
]


class Servers:
    """Server processes on one database."""

    def __init__(self, nursery: Nursery, oracle: Path) -> None:
        self._nursery, self._oracle = nursery, oracle
        self._started: list[Forked] = []

    def start(self, hold_seconds: float | None = None) -> tuple[str, Forked]:
        """The address of a new one that answers, batches only so long after COMMIT; None: after a moment."""
        port = free_port()
        held = [] if hold_seconds is None else [f"--hold-seconds={hold_seconds}"]
        server = self._nursery.fork([f"--port={port}", f"--oracle={self._oracle}", *held])
        self._started.append(server)
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                assert httpx.get(f"{url}/livez").status_code == httpx.codes.OK
                return url, server
            except httpx.HTTPError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def close(self) -> None:
        """End all that live."""
        for server in self._started:
            server.kill()


@pytest.fixture
def servers(database_url: str, tmp_path: Path) -> Iterator[Servers]:
    """Of this test's database."""
    environment = os.environ | {
        "NOISESCALE_DATABASE_URL": database_url,
        "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
        "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
        "PYTHONPATH": with_support(),
    }
    nursery = Nursery(environment, tmp_path / "servers.log")
    opened = Servers(nursery, tmp_path)
    yield opened
    opened.close()
    nursery.close()


def send(url: str, run_id: UUID, stream_id: UUID) -> int | None:
    """The acknowledged number; None where no answer came."""
    body = make_batch(run_id=run_id, measurements=make_measurements(steps=range(NUM_ROWS)))
    try:
        answer = httpx.post(f"{url}/api/v1/streams/{stream_id}/batches", json=body, headers=AS_LOCAL_USER, timeout=30)
    except httpx.HTTPError:
        return None
    assert answer.status_code == httpx.codes.OK, answer.text
    return int(answer.json()["acked_seq"])


def send_to_a_server_that_is_killed_at(call: str, number: int, servers: Servers, stream_id: UUID) -> int | None:
    """What the sender hears from a server that dies as it enters its Nth system call of this name."""
    url, server = servers.start()
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", "/dev/null", *inject, "-p", str(server.pid)], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    heard = send(url, stream_id, stream_id)
    server.kill()
    tracer.wait(30)
    tracer.stderr.close()
    return heard


async def stored(database_url: str, stream_id: UUID) -> list[int]:
    connection = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    try:
        rows = await connection.fetch("SELECT seq FROM measurement WHERE stream_id = $1 ORDER BY seq", stream_id)
        return [row["seq"] for row in rows]
    finally:
        await connection.close()


def test_a_server_killed_at_any_write_of_a_batch_loses_and_doubles_nothing(servers: Servers, database_url: str) -> None:
    other_url, _ = servers.start()
    stored_before = []

    def killed(call: str, number: int) -> int | None:
        stream_id = uuid4()
        heard = send_to_a_server_that_is_killed_at(call, number, servers, stream_id)
        before = asyncio.run(stored(database_url, stream_id))
        assert before in ([], WHOLE), (call, number, "a batch is stored whole or not at all")
        assert heard is None or before == WHOLE, (call, number, "an answer before COMMIT")

        assert send(other_url, stream_id, stream_id) == WHOLE[-1]

        assert asyncio.run(stored(database_url, stream_id)) == WHOLE, (call, number)
        stored_before.append(before == WHOLE)
        return heard

    for call in WRITES:
        number = 1
        while killed(call, number) is None:
            number += 1

    assert False in stored_before, "no kill before COMMIT"


def test_a_server_killed_between_commit_and_answer_loses_and_doubles_nothing(
    servers: Servers, database_url: str
) -> None:
    stream_id = uuid4()
    url, server = servers.start(hold_seconds=60)
    with ThreadPoolExecutor(1) as sender:
        heard = sender.submit(send, url, stream_id, stream_id)
        deadline = time.monotonic() + 30
        while asyncio.run(stored(database_url, stream_id)) != WHOLE:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        server.kill()
        assert heard.result() is None

    other_url, _ = servers.start()
    assert send(other_url, stream_id, stream_id) == WHOLE[-1]

    assert asyncio.run(stored(database_url, stream_id)) == WHOLE
