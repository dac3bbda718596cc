"""GET /api/v1/sweeps/{id}/quality."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from problems import assert_problem
from sweep_curves import sweep_of

STEPS = [0, 10, 20, 40, 80, 160]


def run(batch_size: int, floor: float, seed: int, *, scale: float = 1.0, lr: float = 0.1) -> dict[str, Any]:
    """Falls to a floor of its own, rises a little at the end; seeds differ by 0.001."""
    values = [scale * (floor + 1 / (1 + step)) + 0.001 * seed for step in STEPS]
    values[-1] += 0.05
    return {"batch_size": batch_size, "lr": lr, "seed": seed, "steps": STEPS, "values": values}


async def quality_of(
    shared_client: httpx.AsyncClient, *runs: dict[str, Any], **sweep: Any
) -> dict[str, dict[str, Any]]:
    sweep_id = await sweep_of(shared_client, *runs, **sweep)
    answer = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/quality")
    assert answer.status_code == 200, answer.text
    return {one["budget"]: one for one in answer.json()["comparisons"]}


async def test_a_batch_that_ends_at_a_worse_loss_is_worse_with_its_difference(shared_client: httpx.AsyncClient) -> None:
    found = await quality_of(shared_client, *(run(8, 0.5, s) for s in range(3)), *(run(64, 0.7, s) for s in range(3)))

    assert {name: one["verdict"] for name, one in found.items()} == {
        "equal_steps": "worse",
        "equal_examples": "worse",
        "large_budget": "worse",
    }
    difference = found["equal_steps"]["points"][1]["difference"]
    assert difference["low"] < 0.2 < difference["high"]
    assert difference["value"] == pytest.approx(0.2)
    assert "batch 64 is worse than batch 8" in found["large_budget"]["explanation"]


async def test_equal_examples_compare_fewer_steps_of_the_larger_batch(shared_client: httpx.AsyncClient) -> None:
    found = await quality_of(shared_client, *(run(8, 0.5, s) for s in range(3)), *(run(32, 0.5, s) for s in range(3)))

    assert (found["equal_steps"]["at"], found["equal_examples"]["at"]) == (160, 1280)
    means = [point["mean"] for point in found["equal_examples"]["points"]]
    assert means == pytest.approx([0.5 + 1 / 161 + 0.051, 0.5 + 1 / 41 + 0.001])


async def test_equal_batches_are_open(shared_client: httpx.AsyncClient) -> None:
    found = await quality_of(shared_client, *(run(8, 0.5, s) for s in range(3)), *(run(64, 0.5, s) for s in range(3)))

    assert found["equal_steps"]["verdict"] == found["large_budget"]["verdict"] == "open"


async def test_a_score_that_should_rise_is_better_where_it_is_larger(shared_client: httpx.AsyncClient) -> None:
    runs = [*(run(8, 0.5, s) for s in range(3)), *(run(64, 0.7, s) for s in range(3))]

    found = await quality_of(shared_client, *runs, goal="max")

    assert found["equal_steps"]["verdict"] == "better"


async def test_each_batch_size_is_taken_at_its_best_rate(shared_client: httpx.AsyncClient) -> None:
    bad = [run(64, 2.0, s, lr=0.4) for s in range(3)]

    found = await quality_of(
        shared_client, *(run(8, 0.5, s) for s in range(3)), *(run(64, 0.5, s) for s in range(3)), *bad
    )

    assert [point["lr"] for point in found["equal_steps"]["points"]] == [0.1, 0.1]


async def test_a_single_seed_is_not_tested(shared_client: httpx.AsyncClient) -> None:
    found = await quality_of(shared_client, run(8, 0.5, 0), run(64, 0.9, 0))

    point = found["equal_steps"]["points"][1]
    assert (point["standard_error"], point["difference"], found["equal_steps"]["verdict"]) == (None, None, "open")
    assert "need two seeds" in found["equal_steps"]["explanation"]


async def test_runs_that_ended_while_they_improved_leave_the_large_budget_open(
    shared_client: httpx.AsyncClient,
) -> None:
    runs = [run(size, floor, s) for size, floor in ((8, 0.5), (64, 0.9)) for s in range(3)]
    cut = [{**one, "steps": one["steps"][:-1], "values": one["values"][:-1]} for one in runs]

    found = await quality_of(shared_client, *cut)

    assert found["large_budget"]["verdict"] == "open"
    assert "still improved" in found["large_budget"]["explanation"]
    assert found["equal_steps"]["verdict"] == "worse"


async def test_one_batch_size_has_nothing_to_compare(shared_client: httpx.AsyncClient) -> None:
    assert await quality_of(shared_client, run(8, 0.5, 0)) == {}


async def test_an_unknown_sweep_is_not_found(shared_client: httpx.AsyncClient) -> None:
    assert_problem(await shared_client.get(f"/api/v1/sweeps/{uuid4()}/quality"), 404, "sweep-not-found")
