"""GET /api/v1/runs/recommendations: those of /runs/{run_id}/recommendation, for several runs at once."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements
from noisescale_core.advice.recommendation import NOT_IN_A_LIST
from problems import assert_problem

PATH = "/api/v1/runs/recommendations"
OF_ONE_RUN = ("schedule", "waste", "counterfactual", "parallelism", "rescaling")
"""Parts that take half of the time and that no list shows."""


async def log(client: httpx.AsyncClient, num_steps: int, **run: Any) -> str:
    run_id = str(uuid4())
    body = make_batch(run_id=run_id, measurements=make_measurements(steps=range(num_steps)), **run)
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)
    assert answer.status_code == 200, answer.text
    return run_id


@pytest.mark.parametrize("preference", [{}, {"preference": 0.8}])
async def test_they_are_the_recommendations_of_the_runs_in_the_order_asked(
    shared_client: httpx.AsyncClient, preference: dict[str, float]
) -> None:
    run_ids = [await log(shared_client, num_steps) for num_steps in (400, 3, 60)]

    answer = await shared_client.get(PATH, params={"ids": ",".join([*run_ids, str(uuid4())]), **preference})

    one_by_one = [
        (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation", params=preference)).json()
        for run_id in run_ids
    ]
    left_out = dict.fromkeys(OF_ONE_RUN) | {"schedule_missing": NOT_IN_A_LIST, "critical_batch_by_definition": None}
    assert answer.json()["recommendations"] == [one | left_out for one in one_by_one]


async def test_a_run_without_steps_has_one_too(shared_client: httpx.AsyncClient) -> None:
    empty = (await shared_client.post("/api/v1/runs", json={"project": "demo"})).json()["id"]

    (found,) = (await shared_client.get(PATH, params={"ids": empty})).json()["recommendations"]

    assert found["decision"] == "insufficient_evidence"


async def test_more_than_twenty_are_refused(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.get(PATH, params={"ids": ",".join(str(uuid4()) for _ in range(21))})

    assert_problem(answer, 422, "invalid-input", field="ids")
