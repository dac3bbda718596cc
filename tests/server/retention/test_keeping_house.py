"""Old runs are folded and deleted ones go, some rows at a time, by one server at once, and it says what it did."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from app_in_process import client_of, running_app
from factories import make_batch, make_groups, make_measurements, make_run
from noisescale_server.process import house_keeping
from noisescale_server.services import retention
from noisescale_server.services.ingest import ledger
from noisescale_server.storage.platform.row_tables import GONE_LATER
from problems import assert_problem

YEARS = timedelta(days=400)
STEPS = range(0, 6_144, 8)


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[FastAPI]:
    async with running_app(database_url) as created:
        yield created


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as opened:
        yield opened


async def stored(client: httpx.AsyncClient) -> UUID:
    """A run of 6,144 steps with one record of layers and a metric."""
    run_id = uuid4()
    rows = make_measurements(steps=STEPS, log_every=8)
    seq = rows["seq"][-1] + 1
    body = make_batch(
        run_id=run_id,
        run=make_run(project="old"),
        measurements=rows,
        metrics={"seq": [seq], "step": [5], "wall_time": [1.0], "name": ["accuracy"], "value": [0.5]},
        groups=[make_groups(seq=seq + 1, step=100)],
        last_seq=seq + 1,
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)
    assert answer.status_code == 200, answer.text
    return run_id


async def num_rows(app: FastAPI, run_id: UUID) -> dict[str, int]:
    async with app.state.sessions() as session:
        return {
            table: int(await session.scalar(text(f"SELECT count(*) FROM {table} WHERE run_id = :id"), {"id": run_id}))
            for table in GONE_LATER
        }


async def fold_after_days(client: httpx.AsyncClient, days: int | None) -> httpx.Response:
    return await client.put("/api/v1/projects/old/retention", json={"fold_after_days": days})


def later(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


class TestSetting:
    async def test_a_project_keeps_everything_until_it_says_otherwise(
        self, app: FastAPI, client: httpx.AsyncClient
    ) -> None:
        run_id = await stored(client)
        before = await num_rows(app, run_id)

        assert (await client.get("/api/v1/projects/old/retention")).json() == {"fold_after_days": None}
        assert (await retention.work(app.state.sessions, datetime.now(UTC) + YEARS)).num_rows == 0
        assert await num_rows(app, run_id) == before

    async def test_what_is_put_is_read_back_and_stands_in_the_audit(self, client: httpx.AsyncClient) -> None:
        await stored(client)

        assert (await fold_after_days(client, 30)).json() == {"fold_after_days": 30}
        assert (await client.get("/api/v1/projects/old/retention")).json() == {"fold_after_days": 30}
        assert (await fold_after_days(client, None)).json() == {"fold_after_days": None}
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        said = [one["details"] for one in entries if one["action"] == "project retention set"]
        assert [one["fold_after_days"] for one in said] == ["never", "30"]

    @pytest.mark.parametrize("days", [0, -1, 36_501, 1.5, "30", True])
    async def test_what_is_no_number_of_days_is_refused_and_named(
        self, client: httpx.AsyncClient, days: object
    ) -> None:
        await stored(client)

        answer = await client.put("/api/v1/projects/old/retention", json={"fold_after_days": days})

        assert_problem(answer, 422, "invalid-input")
        assert answer.json()["errors"][0]["field"] == "fold_after_days"

    async def test_of_a_project_that_is_not_there_nothing_is_said(self, client: httpx.AsyncClient) -> None:
        assert_problem(await client.get("/api/v1/projects/none/retention"), 404, "project-not-found")


class TestFolding:
    async def test_a_run_is_folded_once_nothing_has_come_for_so_many_days(
        self, app: FastAPI, client: httpx.AsyncClient
    ) -> None:
        run_id = await stored(client)
        await fold_after_days(client, 30)

        early = await retention.work(app.state.sessions, later(29.9))
        done = await retention.work(app.state.sessions, later(30.1))
        again = await retention.work(app.state.sessions, later(30.1))

        assert (early.num_rows, again.num_rows) == (0, 0)
        # the first 1,024 steps and the last fourth stay, and the layers of a run so short
        assert (done.folded.measurements, done.folded.groups, done.folded.metrics) == (3 * 128, 0, 0)
        assert (await num_rows(app, run_id))["measurement"] == len(STEPS) - 3 * 128

    async def test_a_round_takes_about_as_many_rows_as_it_may(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        for _ in range(3):
            await stored(client)
        await fold_after_days(client, 30)

        first = await retention.work(app.state.sessions, later(31), at_most=100)

        assert (first.folded_runs, first.folded.measurements, first.has_more) == (0, 384, True)

    async def test_rows_that_the_pyramid_lacks_stay_and_the_log_says_so(
        self, app: FastAPI, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        run_id = await stored(client)
        await fold_after_days(client, 30)
        async with app.state.sessions.begin() as session:
            await session.execute(text("DELETE FROM rollup WHERE level = 2 AND bucket = 2"))
        before = await num_rows(app, run_id)

        done = await retention.work(app.state.sessions, later(31))

        assert done.num_rows == 0
        assert await num_rows(app, run_id) == before
        assert "the pyramid holds 256 of 384 rows of steps 1024 to 4095" in caplog.text

    async def test_an_audit_sees_a_folded_row_that_the_pyramid_has_lost(
        self, app: FastAPI, client: httpx.AsyncClient
    ) -> None:
        await stored(client)
        await fold_after_days(client, 30)
        await retention.work(app.state.sessions, later(31))
        async with app.state.sessions() as session:
            assert not (await ledger.audit(session)).wrong

        async with app.state.sessions.begin() as session:
            await session.execute(text("UPDATE rollup SET num_rows = num_rows - 1 WHERE level = 5"))
        async with app.state.sessions() as session:
            (wrong,) = (await ledger.audit(session)).wrong

        assert "and 384 folded into a pyramid of 767" in ledger.sentence(wrong)


class TestPurging:
    async def test_a_deleted_run_is_gone_at_once_and_its_rows_go_some_at_a_time(
        self, app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "ROWS_OF_A_PURGE", 100)
        run_id, other = await stored(client), await stored(client)
        kept, total = await num_rows(app, other), sum((await num_rows(app, run_id)).values())

        assert (await client.delete(f"/api/v1/runs/{run_id}")).status_code == 204
        assert_problem(await client.get(f"/api/v1/runs/{run_id}"), 404, "run-not-found")
        assert sum((await num_rows(app, run_id)).values()) == total, "no request waits for them"
        would = await retention.look(app.state.sessions, datetime.now(UTC))
        first = await retention.work(app.state.sessions, datetime.now(UTC), at_most=250)
        rest = await retention.work(app.state.sessions, datetime.now(UTC))

        assert (would.purged, would.purged_runs) == (total, 1)
        assert (first.purged, first.has_more) == (300, True)
        assert (rest.purged, rest.purged_runs, rest.has_more) == (total - 300, 1, False)
        assert set((await num_rows(app, run_id)).values()) == {0}
        assert await num_rows(app, other) == kept
        async with app.state.sessions() as session:
            assert not (await ledger.audit(session)).wrong
        assert (await retention.work(app.state.sessions, datetime.now(UTC))).num_rows == 0

    async def test_what_a_job_still_sends_of_it_is_refused_while_rows_are_there(
        self, client: httpx.AsyncClient
    ) -> None:
        run_id = await stored(client)
        await client.delete(f"/api/v1/runs/{run_id}")

        answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=run_id))

        assert_problem(answer, 410, "run-deleted")


class TestTheServerByItself:
    async def test_another_server_at_work_is_left_alone(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_id = await stored(client)
        await client.delete(f"/api/v1/runs/{run_id}")
        async with app.state.sessions() as other:
            await other.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('noisescale retention', 0))"))
            meanwhile = await retention.work(app.state.sessions, datetime.now(UTC))

        assert (meanwhile.is_busy, meanwhile.num_rows) == (True, 0)
        assert (await retention.work(app.state.sessions, datetime.now(UTC))).purged_runs == 1

    async def test_two_servers_at_once_take_each_row_once(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_ids = [await stored(client) for _ in range(3)]
        total = sum([sum((await num_rows(app, run_id)).values()) for run_id in run_ids])
        for run_id in run_ids:
            await client.delete(f"/api/v1/runs/{run_id}")

        done = await asyncio.gather(*(retention.work(app.state.sessions, datetime.now(UTC)) for _ in range(3)))
        rest = await retention.work(app.state.sessions, datetime.now(UTC))

        assert sum(one.purged for one in [*done, rest]) == total

    async def test_it_says_in_its_log_and_in_its_metrics_what_it_did(
        self, app: FastAPI, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        run_id = await stored(client)
        await client.delete(f"/api/v1/runs/{run_id}")
        caplog.set_level(logging.INFO, house_keeping.__name__)

        await house_keeping.keep(app.state.sessions, app.state.process_metrics, folds=True)

        assert "rows of 1 deleted runs away" in caplog.text
        said = (await client.get("/metrics")).text
        (line,) = [one for one in said.splitlines() if one.startswith('noisescale_retention_rows_total{work="purge"}')]
        assert float(line.split()[-1]) > 700
