"""GET /api/v1/comparison/runs: runs side by side."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from compared_tasks import stored_run
from problems import assert_problem


async def compared(client: httpx.AsyncClient, *run_ids: str, **query: Any) -> dict[str, Any]:
    answer = await client.get("/api/v1/comparison/runs", params={"run": list(run_ids), **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
async def two(shared_client: httpx.AsyncClient) -> tuple[str, str]:
    """A run with a noise scale of 100, and one with 300."""
    project = f"two {uuid4()}"
    first = await stored_run(shared_client, project=project, task="one", noise_scale=100.0, seed=1)
    return first, await stored_run(shared_client, project=project, task="one", noise_scale=300.0, seed=2)


@pytest.mark.parametrize("x", ["step", "units", "time", "loss"])
async def test_the_ratio_of_two_runs_holds_the_planted_one_along_every_axis(
    shared_client: httpx.AsyncClient, two: tuple[str, str], x: str
) -> None:
    found = await compared(shared_client, *two, x=x)

    (ratio,) = found["ratios"]
    assert (ratio["run_id"], ratio["to_run_id"]) == (two[1], two[0])
    assert ratio["mean"]["low"] < 3 < ratio["mean"]["high"]
    assert ratio["mean"]["value"] == pytest.approx(3, rel=0.15)
    assert len(ratio["x"]) == len(ratio["value"]) == len(ratio["low"]) == len(ratio["is_resolved"]) > 10
    xs = [one for one in found["runs"][0]["points"]["x"] if one is not None]
    assert min(xs) <= min(ratio["x"]) <= max(ratio["x"]) <= max(xs)


async def test_each_run_shows_what_its_own_series_shows(shared_client: httpx.AsyncClient, two: tuple[str, str]) -> None:
    found = await compared(shared_client, *two, points=50)
    series = (await shared_client.get(f"/api/v1/runs/{two[1]}/noise-scale", params={"points": 50})).json()

    points = found["runs"][1]["points"]
    for name in ("step", "value", "low", "high", "state", "loss", "global_batch"):
        assert points[name] == series["points"][name]
    assert points["x"] == points["step"]


async def test_efficiency_is_that_of_the_batch_in_use_with_its_interval(
    shared_client: httpx.AsyncClient, two: tuple[str, str]
) -> None:
    points = (await compared(shared_client, two[0]))["runs"][0]["points"]

    last = len(points["step"]) - 1
    scale, batch = points["value"][last], points["global_batch"][last]
    assert points["example_efficiency"][last] == pytest.approx(scale / (scale + batch))
    assert points["example_efficiency_low"][last] < points["example_efficiency"][last]
    assert points["example_efficiency"][last] < points["example_efficiency_high"][last]


async def test_time_is_counted_from_each_run_s_own_start(
    shared_client: httpx.AsyncClient, two: tuple[str, str]
) -> None:
    found = await compared(shared_client, *two, x="time")

    for run in found["runs"]:
        assert min(x for x in run["points"]["x"] if x is not None) == 0


async def test_a_run_that_nobody_knows_is_named_and_the_others_are_compared(
    shared_client: httpx.AsyncClient, two: tuple[str, str]
) -> None:
    unknown = str(uuid4())

    found = await compared(shared_client, unknown, two[0], two[1], two[0])

    assert found["missing"] == [unknown]
    assert [run["run_id"] for run in found["runs"]] == list(two)


async def test_without_a_run_or_with_too_many_the_question_is_refused(shared_client: httpx.AsyncClient) -> None:
    none = await shared_client.get("/api/v1/comparison/runs")
    many = await shared_client.get("/api/v1/comparison/runs", params={"run": [str(uuid4()) for _ in range(21)]})
    odd = await shared_client.get("/api/v1/comparison/runs", params={"run": str(uuid4()), "x": "epoch"})

    assert_problem(none, 422, "invalid-input", field="run")
    assert_problem(many, 422, "invalid-input", field="run")
    assert_problem(odd, 422, "invalid-input", field="x")
