"""GET /metrics: what a scrape says of the server and of live runs, read by the official parsers."""

import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from sqlalchemy import update

from app_in_process import client_of, running_app
from factories import make_batch, make_measurements, make_run
from keys_of_tests import bearer
from noisescale_server.storage.platform.tables import Run
from principals import OURS, PUBLIC_URL, THEIRS, Team, new_key, running_team
from stored_runs import resolved, store_run

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(client: httpx.AsyncClient, accept: str = "text/plain") -> Series:
    """Sample and labels → value."""
    answer = await client.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    parse = parse_openmetrics if "openmetrics" in answer.headers["content-type"] else parse_text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(answer.text)
        for sample in family.samples
    }


def value(found: Series, name: str, **labels: str) -> float:
    return found[f"noisescale_{name}", frozenset(labels.items())]


def of_run(found: Series, run_id: UUID | str) -> dict[str, float]:
    """Name without its prefix → value, of a run; a decision with its word."""
    said = {}
    for (name, labels), number in found.items():
        known = dict(labels)
        if known.get("run") == str(run_id):
            word = f" {known['decision']}" if "decision" in known else ""
            said[name.removeprefix("noisescale_run_") + word] = number
    return said


def runs_shown(found: Series) -> set[str]:
    return {dict(labels)["run"] for _, labels in found if "run" in dict(labels)}


class TestRuns:
    async def test_a_live_run_says_its_noise_scale_batch_efficiency_and_decision(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        decision = {"decision": "increase", "decision_batch_size": 512, "decision_probability": 0.93}
        run_id = await store_run(shared_app, name="big", decision_saving=0.2, **decision, **resolved())

        said = of_run(await scraped(shared_client), run_id)

        assert said.pop("last_heard_timestamp_seconds") == pytest.approx(datetime.now(UTC).timestamp(), abs=60)
        assert said == {
            "info": 1.0, "noise_scale_examples": 500.0, "noise_scale_low_examples": 400.0,
            "noise_scale_high_examples": 650.0, "noise_scale_resolved": 1.0, "batch_size_examples": 250.0,
            "recommended_batch_size_examples": 512.0, "recommendation_odds_ratio": 0.93, "expected_saving_ratio": 0.2,
            "example_efficiency_ratio": pytest.approx(2 / 3), "step": 900.0, "diverged": 0.0, "decision increase": 1.0,
        }  # fmt: skip

    async def test_what_is_not_known_of_a_run_has_no_sample(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        run_id = await store_run(shared_app)

        said = of_run(await scraped(shared_client), run_id)

        assert set(said) == {
            "info", "noise_scale_resolved", "last_heard_timestamp_seconds", "diverged",
            "decision insufficient_evidence",
        }  # fmt: skip

    async def test_both_formats_say_the_same(self, shared_app: FastAPI, shared_client: httpx.AsyncClient) -> None:
        run_id = await store_run(shared_app, name='a "quoted" \\ name', **resolved())

        text, openmetrics = await scraped(shared_client), await scraped(shared_client, OPENMETRICS)

        assert of_run(text, run_id) == of_run(openmetrics, run_id)
        assert any(("name", 'a "quoted" \\ name') in labels for _, labels in text)

    async def test_runs_that_have_ended_crashed_or_are_archived_are_not_live(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        crashed = await store_run(shared_app)
        async with shared_app.state.sessions.begin() as session:
            long_ago = datetime.now(UTC) - timedelta(seconds=601)
            await session.execute(update(Run).where(Run.id == crashed).values(updated_at=long_ago))
        others = [
            await store_run(shared_app, finish_status="finished"),
            await store_run(shared_app, archived=True),
            crashed,
        ]
        live = await store_run(shared_app)

        shown = runs_shown(await scraped(shared_client))

        assert str(live) in shown
        assert not {str(one) for one in others} & shown

    async def test_a_diverged_run_says_so(self, shared_app: FastAPI, shared_client: httpx.AsyncClient) -> None:
        run_id = await store_run(shared_app, loss_broken_since=7)

        assert of_run(await scraped(shared_client), run_id)["diverged"] == 1.0


async def test_the_newest_live_runs_are_shown_up_to_the_limit_and_that_there_are_more(
    new_database: Callable[[], str],
) -> None:
    async with running_app(new_database(), metrics_runs=3) as app, client_of(app) as client:
        runs = [await store_run(app, created_at=datetime(2026, 1, day, tzinfo=UTC)) for day in range(1, 8)]

        found = await scraped(client)

        assert runs_shown(found) == {str(one) for one in runs[-3:]}
        assert (value(found, "live_runs"), value(found, "live_runs_left_out")) == (3.0, 1.0)


async def test_a_batch_counts_its_records_and_its_request(new_database: Callable[[], str]) -> None:
    batch = make_batch(run=make_run(), measurements=make_measurements(steps=range(20)))
    lost = {"from": batch["last_seq"] + 1, "to": batch["last_seq"] + 5, "reason": "spool_full"}
    batch |= {"lost": [lost], "last_seq": batch["last_seq"] + 5}
    async with running_app(new_database()) as app, client_of(app) as client:
        for stream_id in (uuid4(), uuid4()):
            await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch | {"run_id": str(uuid4())})
        await client.post(f"/api/v1/streams/{uuid4()}/batches", json={})

        found = await scraped(client)

        assert value(found, "records_total", outcome="accepted") == 2 * (batch["last_seq"] - 5 - batch["first_seq"] + 1)
        assert value(found, "records_total", outcome="lost") == 10
        assert value(found, "requests_total", kind="ingest", status="200") == 2
        assert value(found, "requests_total", kind="ingest", status="422") == 1
        assert value(found, "request_seconds_count", kind="ingest") == 3
        assert value(found, "waiting_runs", work="decision") + value(found, "waiting_runs", work="window") <= 2


async def test_errors_of_the_log_and_connections_are_counted(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    before = await scraped(shared_client)
    logging.getLogger("noisescale_server.process.refreshing").error("planted")
    logging.getLogger("somebody.else").error("planted")

    after = await scraped(shared_client)

    assert value(after, "logged_errors_total", logger="noisescale_server.process.refreshing") == 1
    assert value(after, "logged_errors_total", logger="other") == 1
    assert not [name for name, _ in before if name == "noisescale_logged_errors_total"]
    assert value(after, "database_connections_in_use") >= 0
    assert (value(after, "database_up"), value(after, "database_answer_seconds") < 5) == (1.0, True)


async def test_a_server_without_its_database_says_so(new_database: Callable[[], str]) -> None:
    async with running_app(new_database()) as app, client_of(app) as client:
        await store_run(app)
        app.state.read_sessions = Refusing()

        found = await scraped(client)

        assert value(found, "database_up") == 0.0
        assert not runs_shown(found)
        assert value(found, "build_info", version="0.1.0") == 1.0


class Refusing:
    """Sessions of a database that is not there."""

    def __call__(self, **_: Any) -> Any:
        raise ConnectionRefusedError("planted")


class TestRights:
    @staticmethod
    async def statuses(team: Team, headers: dict[str, str]) -> dict[str, int]:
        transport = httpx.ASGITransport(app=team.app)
        async with httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=headers) as client:
            paths = ("/metrics", "/api/v1/me", "/api/v1/runs", "/api/v1/keys", "/", "/openapi.json")
            return {path: (await client.get(path)).status_code for path in paths}

    async def test_a_metrics_key_reads_metrics_and_who_it_is_and_nothing_else(self, team: Team) -> None:
        key = await new_key(team.app, "metrics", OURS)

        found = await self.statuses(team, bearer(key))

        assert key.startswith("ns_m_")
        assert found == {
            "/metrics": 200, "/api/v1/me": 200, "/api/v1/runs": 403, "/api/v1/keys": 403, "/": 403,
            "/openapi.json": 403,
        }  # fmt: skip

    async def test_a_metrics_key_sees_runs_of_its_projects_alone(self, team: Team) -> None:
        ours, theirs = await store_run(team.app, project=OURS), await store_run(team.app, project=THEIRS)
        headers = bearer(await new_key(team.app, "metrics", OURS))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=team.app), base_url=PUBLIC_URL, headers=headers
        ) as client:
            found = await scraped(client)

        assert str(ours) in runs_shown(found)
        assert str(theirs) not in runs_shown(found)
        assert value(found, "live_runs") == len(runs_shown(found))


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened
