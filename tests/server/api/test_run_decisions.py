"""GET /api/v1/runs?decision=: the filter lets through what the rows say."""

import math
import random
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from calibrating_sweeps import planted_sweep
from stored_runs import resolved, store_run

WORDS = ("increase", "decrease", "keep", "insufficient_evidence")


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

    said = await rows(shared_client, project=project)

    assert len(said) == 154
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
    before = await rows(shared_client, project=project, task="one", decision="keep")

    await planted_sweep(shared_client, project=project, task="one")

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

    answer = await shared_client.get(
        "/api/v1/runs/summary", params={"by": "task", "project": project, "decision": "increase"}
    )

    assert [(group["value"], group["num_runs"]) for group in answer.json()["groups"]] == [("far", 1)]


@pytest.mark.parametrize("word", ["raise", ""])
async def test_an_unknown_decision_is_refused(shared_client: httpx.AsyncClient, word: str) -> None:
    answer = await shared_client.get("/api/v1/runs", params={"decision": word})

    assert answer.status_code == 422
    assert "increase" in answer.text
