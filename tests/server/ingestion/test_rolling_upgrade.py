"""Two replicas are exchanged one after the other while jobs log and pages are read: no record and no read is lost.

Processes as a cluster has them, behind a proxy that, as a Service does, passes new connections to replicas that are
ready, and none any more to one that is told to end.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from keys_of_tests import bearer
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale_server.cli import upkeep
from noisescale_server.process.settings import Settings
from served_app import TOKEN, free_port, wait_until_ready
from served_in_thread import Connections, served_connections
from toxic_proxy import pump

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.alone]

NORMS = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0}
NUM_JOBS, PAUSE_SECONDS = 3, 0.005
SECONDS_TO_FORGET = 1.0
"""From when a Service passes nothing on to a replica until it is told to end: its `preStop` waits five."""


class Service:
    """Passes each new connection to the next replica that is ready."""

    def __init__(self) -> None:
        self.ready: list[int] = []
        self.port = 0
        self._turn = 0
        self._connections = Connections(self._pass_on)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its address."""
        with served_connections(self._connections) as self.port:
            yield f"http://127.0.0.1:{self.port}"

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._turn += 1
        to_server = await self._connections.dial("127.0.0.1", self.ready[self._turn % len(self.ready)])
        ways = [pump(reader, to_server[1]), pump(to_server[0], writer)]
        # an end that one side has closed is closed for the other
        _, left = await asyncio.wait(map(asyncio.ensure_future, ways), return_when=asyncio.FIRST_COMPLETED)
        for way in left:
            way.cancel()
        for end in (writer, to_server[1]):
            end.close()


class Replica:
    """One process of `noisescale serve`."""

    def __init__(self, database_url: str) -> None:
        self.port = free_port()
        environment = os.environ | {
            "NOISESCALE_DATABASE_URL": database_url,
            "NOISESCALE_LOCAL_TOKEN": TOKEN,
            "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
            "NOISESCALE_READS_PER_MINUTE": "1000000",
        }
        command = [str(Path(sys.executable).with_name("noisescale")), "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        wait_until_ready(f"http://127.0.0.1:{self.port}", self.process)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)


class Job(threading.Thread):
    """Logs until it is told to stop."""

    def __init__(self, config: Config) -> None:
        super().__init__(daemon=True)
        self.run_ = Run(config, RunDescription(project="demo"))
        self.num_steps = 0
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(PAUSE_SECONDS):
            self.run_.log_norms(**NORMS, step=self.num_steps)
            self.num_steps += 1

    def stop(self) -> None:
        self.is_over.set()
        self.join()
        self.run_.finish()


class Reader(threading.Thread):
    """Reads a page of runs again and again, each time on a connection of its own."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.answers = url, list[str]()
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.02):
            try:
                self.answers.append(
                    str(httpx.get(f"{self.url}/api/v1/runs", headers=bearer(TOKEN), timeout=30).status_code)
                )
            except httpx.HTTPError as error:
                self.answers.append(repr(error))


def test_two_replicas_are_exchanged_one_after_the_other_and_nobody_notices(database_url: str, tmp_path: Path) -> None:
    service = Service()
    replicas = [Replica(database_url) for _ in range(2)]
    service.ready = [one.port for one in replicas]
    with service.serving() as url:
        jobs = [Job(Config(url=url, api_key=TOKEN, folders=(tmp_path / "state",))) for _ in range(NUM_JOBS)]
        reader = Reader(url)
        for thread in (*jobs, reader):
            thread.start()
        time.sleep(2)
        for number in range(2):
            new = Replica(database_url)
            old, replicas[number] = replicas[number], new
            service.ready = [one.port for one in replicas]
            time.sleep(SECONDS_TO_FORGET)
            old.end()
        time.sleep(2)
        reader.is_over.set()
        reader.join()
        for job in jobs:
            job.stop()
        ledgers = [
            httpx.get(f"{url}/api/v1/runs/{job.run_.id}/streams", headers=bearer(TOKEN)).json()["ledger"]
            for job in jobs
        ]
    for one in replicas:
        one.end()

    print(f"{len(reader.answers)} reads, {sum(job.num_steps for job in jobs)} steps")
    assert len(reader.answers) > 50
    assert set(reader.answers) == {"200"}
    # a job's first record describes its run, its last one ends it
    assert [one["num_stored"] for one in ledgers] == [job.num_steps + 2 for job in jobs]
    assert all(one["is_true"] and one["num_lost"] == 0 for one in ledgers)
    assert upkeep.audit(Settings(database_url=database_url)) == 0
