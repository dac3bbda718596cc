"""GET /api/v1/runs?decision=: the filter lets through what the rows say."""

import math
import random
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from calibrating_sweeps import planted_sweep
from factories import make_batch, make_measurements, make_run
from noisescale_server.services.ingest import stale_windows
from noisescale_server.services.recommendation import decisions
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import recommendation as run_decisions
from noisescale_server.storage.platform.tables import Run
from stored_runs import judge_all, resolved, store_run

WORDS = (
    "increase", "decrease", "keep", "probably_increase", "probably_decrease", "keep_for_now", "insufficient_evidence",
)  # fmt: skip


async def rows(client: httpx.AsyncClient, **query: object) -> dict[str, str]:
    """Name → decision of the runs of a list."""
    answer = await client.get("/api/v1/runs", params={"limit": 500, **query})
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"] == len(answer.json()["runs"])
    return {run["name"]: run["decision"]["decision"] for run in answer.json()["runs"]}


async def test_the_filter_agrees_with_the_decision_of_every_row(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    project, dice = f"many {uuid4()}", random.Random(7)
    for number in range(150):
        value, spread = 10 ** dice.uniform(0, 5), 10 ** dice.uniform(0.01, 1.5)
        columns = resolved(value, low=value / spread, high=value * spread, batch=value * 10 ** dice.uniform(-2.5, 2.5))
        if number % 10 == 0:
            columns["noise_scale_state"] = dice.choice(["tentative", "unresolved"])
        if number % 15 == 1:
            columns["noise_scale_low"] = dice.choice([None, 0.0])
        await store_run(shared_app, project=project, name=str(number), **columns)
    for number, columns in enumerate(
        ({}, resolved(value=1e-12, low=1e-13, high=1e-11), resolved(batch=1e-12), {"latest_global_batch": 3.0})
    ):
        await store_run(shared_app, project=project, name=f"odd {number}", **columns)

    await judge_all(shared_app)
    said = await rows(shared_client, project=project)

    assert len(said) == 154
    # nobody says a price and no sweep says κ: then no batch is known to be the right one
    assert set(said.values()) == set(WORDS) - {"keep"}
    for word in WORDS:
        found = await rows(shared_client, project=project, decision=word)
        assert set(found) == {name for name, own in said.items() if own == word}
    both = await rows(shared_client, project=project, decision=["increase", "decrease"])
    assert set(both.values()) == {"increase", "decrease"}


async def test_a_sweep_that_makes_decisions_surer_moves_the_filter_too(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    project = f"calibrated {uuid4()}"
    for task in ("one", "elsewhere"):
        for step in range(-6, 7):
            near = resolved(128.0, low=120.0, high=137.0, batch=256.0 * math.exp(step / 3))
            await store_run(shared_app, project=project, task=task, name=f"{task} {step}", **near)
    await judge_all(shared_app)
    before = await rows(shared_client, project=project, task="one", decision="keep")

    await planted_sweep(shared_client, project=project, task="one")
    await judge_all(shared_app)

    for task in ("one", "elsewhere"):
        said = await rows(shared_client, project=project, task=task)
        for word in WORDS:
            found = await rows(shared_client, project=project, task=task, decision=word)
            assert set(found) == {name for name, own in said.items() if own == word}
    assert before == {}
    assert await rows(shared_client, project=project, task="one", decision="keep") != {}


async def test_groups_are_of_the_runs_with_that_decision(shared_app: FastAPI, shared_client: httpx.AsyncClient) -> None:
    project = f"groups {uuid4()}"
    far = resolved(1e5, low=0.9e5, high=1.1e5, batch=8.0)
    await store_run(shared_app, project=project, name="far", task="far", **far)
    await store_run(shared_app, project=project, name="unknown", task="unknown")
    await judge_all(shared_app)

    answer = await shared_client.get(
        "/api/v1/runs/summary", params={"by": "task", "project": project, "decision": "increase"}
    )

    assert [(group["value"], group["num_runs"]) for group in answer.json()["groups"]] == [("far", 1)]


@pytest.mark.parametrize("word", ["raise", ""])
async def test_an_unknown_decision_is_refused(shared_client: httpx.AsyncClient, word: str) -> None:
    answer = await shared_client.get("/api/v1/runs", params={"decision": word})

    assert answer.status_code == 422
    assert "increase" in answer.text


async def no_runs(_: AsyncSession) -> list[UUID]:
    return []


async def test_a_run_is_judged_by_what_has_come_and_again_once_there_is_more(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row waits for the rest of its look, an eighth of the steps; a run that is read by itself does not."""
    # the server's own rounds would judge it between two lines of this test
    monkeypatch.setattr(decisions, "of_a_round", no_runs)
    project, run_id, stream_id = f"grows {uuid4()}", uuid4(), uuid4()
    run = make_run(project=project)
    sent = await send_steps(shared_client, run_id, stream_id, range(600), run=run)
    fresh = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()["decision"]
    (before,) = (await shared_client.get("/api/v1/runs", params={"project": project})).json()["runs"]
    await refreshed(shared_app, run_id)
    (judged,) = (await shared_client.get("/api/v1/runs", params={"project": project})).json()["runs"]

    await send_steps(shared_client, run_id, stream_id, range(600, 610), run=run, first_seq=sent + 2)
    waiting = await is_waiting(shared_app, run_id)
    await send_steps(shared_client, run_id, stream_id, range(610, 650), run=run, first_seq=sent + 12)

    assert before["decision"]["decision"] == "insufficient_evidence"
    assert before["decision"]["reason"] == "Not judged yet: the server looks at its runs in turn, those in use first."
    assert judged["decision"] == fresh
    assert fresh["decision"] == "increase"
    assert 0.8 <= fresh["probability"] <= 1
    assert not waiting
    assert await is_waiting(shared_app, run_id)


async def test_the_row_says_what_the_recommendation_says(shared_app: FastAPI, shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    await send_steps(shared_client, run_id, uuid4(), range(300), run=make_run(project=f"same {uuid4()}"))
    await refreshed(shared_app, run_id)

    row = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()["decision"]
    advice = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).json()

    assert (row["decision"], row["batch_size"]) == (advice["decision"], advice["recommended_batch_size"])
    assert row["reason"] == advice["reason"]
    assert row["probability"] == pytest.approx(advice["odds"]["probability"])
    assert row["saving"] == pytest.approx(advice["odds"]["saving"])


async def test_two_servers_judge_no_run_at_once_and_batches_wait_for_neither(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    run_id, stream_id, run = uuid4(), uuid4(), make_run(project=f"two {uuid4()}")
    await send_steps(shared_client, run_id, stream_id, range(100), run=run)

    async with shared_app.state.sessions.begin() as one, shared_app.state.sessions.begin() as other:
        claims = [await run_decisions.claim(one, run_id), await run_decisions.claim(other, run_id)]
        # while it is claimed
        await send_steps(shared_client, run_id, stream_id, range(100, 150), run=run, first_seq=102)

    assert claims == [True, False]


async def send_steps(
    client: httpx.AsyncClient, run_id: UUID, stream_id: UUID, steps: range, *, run: dict[str, Any], first_seq: int = 1
) -> int:
    """Rows of noise scale 5,000 at batch 64; how many."""
    rows = make_measurements(first_seq=first_seq + (first_seq == 1), steps=steps, noise_scale=5000.0, global_batch=64.0)
    body = make_batch(run_id=run_id, run=run, measurements=rows, first_seq=first_seq)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text
    return len(steps)


async def refreshed(app: FastAPI, run_id: UUID) -> None:
    """Do what a server does each second for a run."""
    async with app.state.sessions.begin() as session:
        await stale_windows.refresh(session, run_id)
    async with app.state.sessions.begin() as session:
        await decisions.refresh(session, run_id, WholeRuns())


async def is_waiting(app: FastAPI, run_id: UUID) -> bool:
    """Whether the run is to be judged again."""
    async with app.state.sessions() as session:
        return bool(await session.scalar(select(Run.decision_is_stale).where(Run.id == run_id)))
