"""A database gets a newer schema while jobs log, and then its server is exchanged: nothing is lost or doubled."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from alembic.script import ScriptDirectory

from keys_of_tests import bearer
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale_server.cli import upkeep
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrate, migrations_folder
from noisescale_server.process.settings import Settings
from served_app import TOKEN, free_port, served_app

pytestmark = pytest.mark.processes

NORMS = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0}
NUM_JOBS, PAUSE_SECONDS = 4, 0.005
LONGEST_OUTAGE_SECONDS = 1.0


class Job(threading.Thread):
    """Logs until it is told to stop."""

    def __init__(self, config: Config) -> None:
        super().__init__(daemon=True)
        self.run_ = Run(config, RunDescription(project="demo"))
        self.num_steps = 0
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(PAUSE_SECONDS):
            self.run_.log_norms(**NORMS, step=self.num_steps)
            self.num_steps += 1

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        self.run_.finish()


@contextmanager
def watched(url: str) -> Iterator[list[tuple[float, bool]]]:
    """When a reader asked, and whether the answer was one of a server in order."""
    seen: list[tuple[float, bool]] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.wait(0.01):
            answer = httpx.get(f"{url}/api/v1/runs", headers=bearer(TOKEN), timeout=10)
            seen.append((time.monotonic(), answer.status_code < 500))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    yield seen
    is_over.set()
    thread.join()


def longest_outage(seen: list[tuple[float, bool]]) -> float:
    """Seconds from one good answer to the next."""
    good = [at for at, is_good in seen if is_good]
    return max(later - at for at, later in pairwise(good))


@pytest.fixture
def database_before(postgres: EmbeddedPostgres) -> str:
    """A database with the schema of one migration ago; what that one added, storing does without."""
    name = f"upgraded_{uuid4().hex[:8]}"
    postgres.create_database(name)
    newest = ScriptDirectory(str(migrations_folder())).get_revision("head")
    assert newest is not None
    migrate(postgres.url(name), revision=str(newest.down_revision))
    return postgres.url(name)


@pytest.mark.slow
@pytest.mark.alone
def test_a_schema_is_upgraded_and_the_server_exchanged_under_jobs_that_log(
    database_before: str, tmp_path: Path
) -> None:
    port = free_port()
    config = Config(url=f"http://127.0.0.1:{port}", api_key=TOKEN, folders=(tmp_path / "state",))
    jobs = [Job(config) for _ in range(NUM_JOBS)]
    with served_app(database_before, port=port) as url, watched(url) as seen:
        for job in jobs:
            job.start()
        time.sleep(1)
        before = [job.num_steps for job in jobs]

        migrate(database_before)

        time.sleep(1)
        assert all(job.num_steps > steps > 0 for job, steps in zip(jobs, before, strict=True))
    with served_app(database_before, port=port) as url:
        time.sleep(1)
        for job in jobs:
            job.stop()
        ledgers = [
            httpx.get(f"{url}/api/v1/runs/{job.run_.id}/streams", headers=bearer(TOKEN)).json()["ledger"]
            for job in jobs
        ]

    assert longest_outage(seen) < LONGEST_OUTAGE_SECONDS
    # a job's first record describes its run, its last one ends it
    assert [one["num_stored"] for one in ledgers] == [job.num_steps + 2 for job in jobs]
    assert all(one["is_true"] and one["num_lost"] == 0 for one in ledgers)
    assert upkeep.audit(Settings(database_url=database_before)) == 0
