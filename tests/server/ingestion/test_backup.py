"""A backup written while jobs send, read into an empty database: jobs send again what it lacks, nothing is doubled."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from app_in_process import client_of, running_app
from factories import make_batch, make_measurements
from noisescale_server.cli import backups, upkeep
from noisescale_server.cli.backups import BackupError
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrations_folder
from noisescale_server.process.settings import Settings

pytestmark = pytest.mark.processes

NUM_BATCHES = 6
ROWS = 10


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> str:
    """The address of a database without tables."""
    name = f"empty_{uuid4().hex[:8]}"
    postgres.create_database(name)
    return postgres.url(name)


def batch(run_id: UUID, number: int) -> dict[str, Any]:
    """The spool's batch of this number; the first brings the run."""
    first = 1 + number * (ROWS + 1) if number == 0 else 2 + number * ROWS
    steps = range(number * ROWS, (number + 1) * ROWS)
    rows = make_measurements(first_seq=2 + number * ROWS, steps=steps)
    return make_batch(run_id=run_id, first_seq=first, crc32=number, with_run=number == 0, measurements=rows)


async def send(client: httpx.AsyncClient, stream_id: UUID, body: dict[str, Any]) -> httpx.Response:
    return await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)


async def test_a_job_goes_back_to_where_the_backup_ends_and_nothing_is_lost_or_doubled(
    database_url: str, empty_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id, stream_id, file = uuid4(), uuid4(), tmp_path / "monday.backup"
    async with running_app(database_url) as app, client_of(app) as client:
        for number in range(3):
            before = await send(client, stream_id, batch(run_id, number))
        await asyncio.to_thread(upkeep.back_up, Settings(database_url=database_url), file=file)
        for number in range(3, NUM_BATCHES - 1):
            await send(client, stream_id, batch(run_id, number))

    await asyncio.to_thread(upkeep.restore, Settings(database_url=empty_database), file=file)
    async with running_app(empty_database) as app, client_of(app) as client:
        gap = await send(client, stream_id, batch(run_id, NUM_BATCHES - 1))
        expected = gap.json()["expected_seq"]
        again = [number for number in range(NUM_BATCHES) if batch(run_id, number)["last_seq"] >= expected]
        answers = [await send(client, stream_id, batch(run_id, number)) for number in again]
        streams = (await client.get(f"/api/v1/runs/{run_id}/streams")).json()
        async with app.state.sessions() as session:
            found = await session.scalars(text("SELECT seq FROM measurement ORDER BY seq"))
            stored = list(found.all())

    assert (gap.status_code, expected) == (409, 2 + 3 * ROWS)
    assert gap.json()["epoch"] != before.json()["epoch"]
    assert {one.json()["database_id"] for one in (gap, *answers)} == {before.json()["database_id"]}, "the same one"
    assert [answer.status_code for answer in answers] == [200] * 3
    assert stored == list(range(2, 2 + NUM_BATCHES * ROWS))
    assert streams["ledger"]["is_true"]
    assert streams["ledger"]["num_stored"] == 1 + NUM_BATCHES * ROWS
    assert await asyncio.to_thread(upkeep.audit, Settings(database_url=empty_database)) == 0
    assert f"in epoch {gap.json()['epoch']}: jobs send again" in capsys.readouterr().out


def test_a_backup_is_not_read_into_a_database_with_tables(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    backups.write(database_url, file)

    with pytest.raises(BackupError, match="has tables already: restore into an empty one"):
        upkeep.restore(Settings(database_url=database_url), file=file)


def test_a_backup_overwrites_no_file(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "backup").write_text("yesterday's")

    with pytest.raises(BackupError, match="exists already: choose another name"):
        backups.write(database_url, tmp_path / "backup")

    assert (tmp_path / "backup").read_text() == "yesterday's"


def test_what_is_no_backup_leaves_the_database_empty(
    empty_database: str, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    file = tmp_path / "backup"
    backups.write(new_database(), file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    with pytest.raises(BackupError, match="pg_restore ended with exit code 1"):
        upkeep.restore(Settings(database_url=empty_database), file=file)

    file.unlink()
    backups.write(new_database(), file)
    assert upkeep.restore(Settings(database_url=empty_database), file=file) == 0


def test_the_embedded_database_is_kept_while_it_runs(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    """`up` holds the data folder; the commands go through its socket."""
    data_dir = Path(postgres._data_dir)
    settings = Settings(data_dir=tmp_path)
    (tmp_path / "postgres").symlink_to(data_dir)

    with upkeep.kept_database(settings) as database_url:
        assert database_url == postgres.url()


def test_a_backup_of_the_release_before_is_migrated(
    postgres: EmbeddedPostgres, empty_database: str, tmp_path: Path
) -> None:
    postgres.create_database("release_before")
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", postgres.url("release_before").replace("%", "%%"))
    command.upgrade(config, "5a1c0e7d2b09")
    backups.write(postgres.url("release_before"), tmp_path / "backup")

    assert upkeep.restore(Settings(database_url=empty_database), file=tmp_path / "backup") == 0
    assert upkeep.audit(Settings(database_url=empty_database)) == 0
