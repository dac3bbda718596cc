"""GET /api/v1/runs/sparklines: the points of /noise-scale for many runs at once."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_stream
from problems import assert_problem

PATH = "/api/v1/runs/sparklines"


async def log(client: httpx.AsyncClient, run_id: str, stream_id: str, *, first: int, num_steps: int) -> None:
    rows = make_measurements(first_seq=first + 2, steps=range(first, first + num_steps))
    batch = (
        make_batch(run_id=run_id, measurements=rows)
        if first == 0
        else make_batch(run_id=run_id, first_seq=first + 2, crc32=first, measurements=rows)
    )
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
    assert answer.status_code == 200, answer.text


async def sparklines(client: httpx.AsyncClient, *run_ids: str, **query: Any) -> dict[str, dict[str, list[Any]]]:
    answer = await client.get(PATH, params={"ids": ",".join(run_ids), **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, dict[str, list[Any]]] = answer.json()["runs"]
    return found


@pytest.mark.parametrize("num_steps", [3, 40, 900])
async def test_they_are_the_points_of_the_series(shared_client: httpx.AsyncClient, num_steps: int) -> None:
    run_id = str(uuid4())
    await log(shared_client, run_id, str(uuid4()), first=0, num_steps=num_steps)

    found = (await sparklines(shared_client, run_id, points=28))[run_id]

    series = (await shared_client.get(f"/api/v1/runs/{run_id}/noise-scale", params={"points": 28})).json()["points"]
    assert found == {name: series[name] for name in ("step", "value", "low", "high", "global_batch")}


async def test_details_are_the_states_times_and_events_of_the_series(shared_client: httpx.AsyncClient) -> None:
    run_id = str(uuid4())
    await log(shared_client, run_id, str(uuid4()), first=0, num_steps=100)
    larger = make_measurements(steps=range(100, 200), global_batch=1024.0)
    resumed = make_batch(run_id=run_id, stream=make_stream(started_at=1.8e9), measurements=larger)
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=resumed)
    assert answer.status_code == 200, answer.text

    found = (await sparklines(shared_client, run_id, details=True))[run_id]

    series = (await shared_client.get(f"/api/v1/runs/{run_id}/noise-scale", params={"points": 28})).json()
    assert [event["kind"] for event in found["events"]] == ["resumed", "batch"]
    assert found["events"] == series["events"]
    assert (found["state"], found["wall_time"]) == (series["points"]["state"], series["points"]["wall_time"])


async def test_a_run_that_logs_more_has_another_one(shared_client: httpx.AsyncClient) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    await log(shared_client, run_id, stream_id, first=0, num_steps=100)
    before = await sparklines(shared_client, run_id)

    again = await sparklines(shared_client, run_id)
    await log(shared_client, run_id, stream_id, first=100, num_steps=100)
    after = await sparklines(shared_client, run_id)

    assert again == before
    assert (before[run_id]["step"][-1], after[run_id]["step"][-1]) == (99, 199)


async def test_runs_without_steps_and_unknown_ones_are_left_out(shared_client: httpx.AsyncClient) -> None:
    empty = (await shared_client.post("/api/v1/runs", json={"project": "demo"})).json()["id"]

    assert await sparklines(shared_client, empty, str(uuid4())) == {}


async def test_ids_that_are_none_are_refused_by_name(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.get(PATH, params={"ids": f"{uuid4()},oops"})

    assert_problem(answer, 422, "invalid-input", field="ids[1]")
