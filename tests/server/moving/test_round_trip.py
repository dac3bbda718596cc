"""A project leaves a server as Parquet files and comes back, row by row, into the same or another one."""

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from app_in_process import client_of, running_app
from factories import make_batch, make_groups, make_measurements, make_run, make_stream, with_path, without_estimates
from noisescale_server.cli import moving
from noisescale_server.process.settings import Settings
from noisescale_server.services import retention
from noisescale_server.services.ingest import ledger
from noisescale_server.storage import moving as rows
from noisescale_server.storage.moving import NAMES, OF_PROJECT, columns_of, key_of
from reproduction_bodies import claim_body

PROJECT = "vision/größe"
"""A name with what a path and ASCII do not have."""


def settings_of(database_url: str) -> Settings:
    return Settings(database_url=database_url)


async def fill(client: httpx.AsyncClient) -> list[UUID]:
    """Resumed, lossy, folded, of several kinds; with a sweep, a reproduction, views, comments, a pin and settings."""
    run_ids = [uuid4() for _ in range(3)]
    for number, run_id in enumerate(run_ids):
        for process in range(2):
            steps = range(3_000 * process, 3_000 * process + 6_000, 8)
            measured = with_path(make_measurements(steps=steps, log_every=8, seed=number), every=3)
            measured = without_estimates(measured, [5, 9])
            measured["lr"][7] = None
            seq = measured["seq"][-1] + 1
            body = make_batch(
                run_id=run_id,
                run=make_run(project=PROJECT, name=f"=HYPERLINK {number} {{…}}", config={"a": [1, None, {"b": "é"}]}),
                stream=make_stream(started_at=1e9 + process, kind="adam" if number == 2 else "simple"),
                measurements=measured,
                metrics={
                    "seq": [seq, seq],
                    "step": [5, 5],
                    "wall_time": [1.0, 1.0],
                    "name": ["a", "b"],
                    "value": [0.1, None],
                },
                groups=[make_groups(seq=seq + 1 + n, step=100 * n, names=("x", 'y"')) for n in range(3)],
                lost=[{"from": seq + 4, "to": seq + 9, "reason": "disk_full"}],
                last_seq=seq + 9,
            )
            answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)
            assert answer.status_code == 200, answer.text
    sweep = await client.post("/api/v1/sweeps", json={"project": PROJECT, "task": "digits"})
    curve = {"batch_size": 32, "lr": 0.1, "steps": [1, 2], "values": [2.0, 1.0]}
    path = f"/api/v1/sweeps/{sweep.json()['id']}/runs"
    answers = [
        await client.post(path, json={"runs": [curve]}),
        await client.post("/api/v1/reproductions", json=claim_body(project=PROJECT)),
        await client.put(f"/api/v1/projects/{PROJECT}/defaults", json={"preference": 0.3}),
        await client.put(f"/api/v1/projects/{PROJECT}/retention", json={"fold_after_days": 30}),
        await client.post(f"/api/v1/projects/{PROJECT}/views", json={"name": "v", "page": "runs", "query": "q=a"}),
        await client.post(f"/api/v1/runs/{run_ids[0]}/comments", json={"text": "a first look\n“größer”"}),
        await client.put(f"/api/v1/projects/{PROJECT}/baseline", json={"run_id": str(run_ids[1])}),
        await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run=make_run(project="other"))),
    ]
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
    return run_ids


async def everything(database_url: str, project: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of the project, in the order of keys, straight from the database."""
    async with rows.connected(database_url) as connection:
        project_id = await rows.project_id(connection, project)
        return {
            table: [
                tuple(row)
                for row in await connection.fetch(
                    f"SELECT {', '.join(columns_of(table))} FROM {table} WHERE "
                    + (OF_PROJECT.get(table) or "run_id IN (SELECT id FROM run WHERE project_id = $1::uuid)")
                    + f" ORDER BY {', '.join(key_of(table))}",
                    project_id,
                )
            ]
            for table in NAMES
        }


@pytest.fixture(scope="module")
async def filled(new_database: Callable[[], str]) -> str:
    """A database with the project, one part of it folded."""
    database_url = new_database()
    async with running_app(database_url) as app, client_of(app) as client:
        await fill(client)
        await retention.work(app.state.sessions, datetime.now(UTC) + timedelta(days=40))
    return database_url


@pytest.fixture(scope="module")
async def folder(filled: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moving") / "vision"
    assert await asyncio.to_thread(moving.export, settings_of(filled), project=PROJECT, folder=path) == 0
    return path


async def taken_in(database_url: str, folder: Path) -> int:
    return await asyncio.to_thread(moving.take_in, settings_of(database_url), folder=folder)


async def test_another_server_has_every_row_of_every_table_as_it_was(
    filled: str, folder: Path, database_url: str
) -> None:
    assert await taken_in(database_url, folder) == 0

    before, after = await everything(filled, PROJECT), await everything(database_url, PROJECT)
    assert all(before.values()), "no table is compared while it is empty"
    assert len(before["measurement"]) > 2_900
    for table in NAMES:
        assert after[table] == before[table], table
    assert any(row[columns_of("stream").index("num_folded")] for row in after["stream"])
    async with running_app(database_url) as app, app.state.sessions() as session:
        assert not (await ledger.audit(session)).wrong


async def test_a_second_time_nothing_is_new(
    filled: str, folder: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await taken_in(database_url, folder)
    first = await everything(database_url, PROJECT)
    capsys.readouterr()

    assert await taken_in(database_url, folder) == 0
    assert await taken_in(filled, folder) == 0

    said = capsys.readouterr().out
    assert said.count("0 new runs, 0 new rows") == 2
    assert said.count("3 runs were there") == 2
    assert await everything(database_url, PROJECT) == first == await everything(filled, PROJECT)


async def test_a_project_of_the_same_name_takes_them_and_a_deleted_run_stays_deleted(
    filled: str, folder: Path, database_url: str
) -> None:
    run_id = (await everything(filled, PROJECT))["run"][0][0]
    async with running_app(database_url) as app, client_of(app) as client:
        await client.post("/api/v1/runs", json=make_run(project=PROJECT, id=str(uuid4())))
        async with app.state.sessions.begin() as session:
            await session.execute(text("INSERT INTO deleted_run (id) VALUES (:id)"), {"id": run_id})

        assert await taken_in(database_url, folder) == 0

        listed = (await client.get(f"/api/v1/runs?project={PROJECT}")).json()
    assert listed["total"] == 1 + 2
    found = await everything(database_url, PROJECT)
    assert run_id not in {row[0] for row in found["measurement"]}
    assert len(found["project"]) == len(found["task"]) == 1


async def test_a_run_that_was_deleted_here_is_not_pinned(filled: str, folder: Path, database_url: str) -> None:
    run_id = (await everything(filled, PROJECT))["project_baseline"][0][columns_of("project_baseline").index("run_id")]
    async with running_app(database_url) as app, app.state.sessions.begin() as session:
        await session.execute(text("INSERT INTO deleted_run (id) VALUES (:id)"), {"id": run_id})

    assert await taken_in(database_url, folder) == 0

    assert (await everything(database_url, PROJECT))["project_baseline"] == []


async def test_a_folder_of_a_release_without_comments_and_baselines_is_taken_in(
    folder: Path, database_url: str, tmp_path: Path
) -> None:
    older = Path(shutil.copytree(folder, tmp_path / "older"))
    for table in ("run_comment", "project_baseline"):
        (older / f"{table}.parquet").unlink()

    assert await taken_in(database_url, older) == 0

    found = await everything(database_url, PROJECT)
    assert (len(found["run"]), found["run_comment"], found["project_baseline"]) == (3, [], [])


async def test_runs_go_on_where_the_other_server_had_stopped(filled: str, folder: Path, database_url: str) -> None:
    stream = (await everything(filled, PROJECT))["stream"][0]
    run_id, stream_id, next_seq = stream[:3]
    await taken_in(database_url, folder)
    async with running_app(database_url) as app, client_of(app) as client:
        later = make_batch(
            run_id=run_id, first_seq=next_seq, measurements=make_measurements(first_seq=next_seq, steps=[9_000])
        )
        answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=later)

    assert answer.json()["acked_seq"] == next_seq


def test_files_say_units_release_and_schema(folder: Path) -> None:
    schema = pq.read_schema(folder / "measurement.parquet")

    assert {path.stem for path in folder.iterdir()} == set(NAMES)
    assert schema.metadata[b"noisescale.format"] == b"1"
    assert schema.metadata[b"noisescale.project"].decode() == PROJECT
    assert schema.metadata[b"noisescale.version"]
    assert schema.field("sum_trace_cov").metadata[b"unit"].decode().startswith("squared gradient × examples")
    assert schema.field("wall_time").metadata[b"unit"].startswith(b"s since 1970")


class TestWhatCannotBeDone:
    def test_a_folder_that_exists_is_not_written_over(
        self, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert moving.export(settings_of(filled), project=PROJECT, folder=tmp_path) == 1
        assert "exists already: choose another name" in capsys.readouterr().err

    def test_a_project_that_is_not_there_leaves_nothing(
        self, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert moving.export(settings_of(filled), project="none", folder=tmp_path / "x") == 1
        assert "there is no project 'none'" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_of_others_is_named(self, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "project.parquet").write_text("x")

        assert moving.take_in(settings_of(filled), folder=tmp_path / "none") == 1
        assert moving.take_in(settings_of(filled), folder=tmp_path) == 1

        said = capsys.readouterr().err
        assert "is missing: name a folder that `noisescale export` wrote" in said
        assert "is no Parquet file" in said

    async def test_a_folder_that_breaks_off_leaves_nothing(
        self, folder: Path, database_url: str, tmp_path: Path
    ) -> None:
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        broken = pq.read_table(tmp_path / "rollup.parquet")
        # a key twice
        pq.write_table(pa.concat_tables([broken, broken.slice(0, 1)]), tmp_path / "rollup.parquet")

        assert await taken_in(database_url, tmp_path) == 1

        async with rows.connected(database_url) as connection:
            assert await rows.project_id(connection, PROJECT) is None
