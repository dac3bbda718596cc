"""A job logs while its server is restored from a backup: the client itself sends again what the backup lacks."""

import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from keys_of_tests import bearer
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale_server.cli import upkeep
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.settings import Settings
from served_app import TOKEN, free_port, served_app

pytestmark = [pytest.mark.slow, pytest.mark.processes]

NORMS = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0}


def log(run: Run, steps: range) -> None:
    for step in steps:
        run.log_norms(**NORMS, step=step)


def streams_of(url: str, run: Run) -> dict[str, object]:
    found: dict[str, object] = httpx.get(f"{url}/api/v1/runs/{run.id}/streams", headers=bearer(TOKEN)).json()
    return found


def until_stored(url: str, run: Run, num_records: int) -> None:
    deadline = time.monotonic() + 20
    while streams_of(url, run).get("ledger", {}).get("num_stored") != num_records:
        assert time.monotonic() < deadline, streams_of(url, run)
        time.sleep(0.05)


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> str:
    name = f"restored_{uuid4().hex[:8]}"
    postgres.create_database(name)
    return postgres.url(name)


def test_nothing_is_lost_or_doubled_by_a_restore_under_running_and_finished_jobs(
    new_database: Callable[[], str], empty_database: str, tmp_path: Path
) -> None:
    port, before, file = free_port(), new_database(), tmp_path / "monday.backup"
    config = Config(url=f"http://127.0.0.1:{port}", api_key=TOKEN, folders=(tmp_path / "state",))
    busy, silent, finished = (Run(config, RunDescription(project="demo")) for _ in range(3))
    with served_app(before, port=port) as url:
        for run in (busy, silent, finished):
            log(run, range(100))
            until_stored(url, run, 101)
        upkeep.back_up(Settings(database_url=before), file=file)
        for run in (busy, silent, finished):
            log(run, range(100, 300))
            until_stored(url, run, 301)
        finished.finish()
        until_stored(url, finished, 302)

    upkeep.restore(Settings(database_url=empty_database), file=file)
    with served_app(empty_database, port=port) as url:
        log(busy, range(300, 310))

        until_stored(url, busy, 311)
        until_stored(url, silent, 301)
        until_stored(url, finished, 302)
        ledgers = [streams_of(url, run)["ledger"] for run in (busy, silent, finished)]
        busy.finish()
        silent.finish()

    assert all(one["is_true"] and one["num_lost"] == 0 for one in ledgers)
    assert upkeep.audit(Settings(database_url=empty_database)) == 0
