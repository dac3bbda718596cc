"""GET /api/v1/comparison/model-size and /temperature."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run, make_stream
from problems import assert_problem

NUM_STEPS = 200


async def run_of_size(
    client: httpx.AsyncClient, project: str, size: float | None, *, seed: int, lr: float = 0.1, factor: float = 1.0
) -> None:
    """A run whose noise scale is 100 (2 / loss)^3 × factor, whatever its size."""
    rows = make_measurements(steps=range(NUM_STEPS), noise_scale=100.0, lr=lr, seed=seed)
    for place in range(NUM_STEPS):
        loss = 2 * (1 + place / 20) ** -0.2
        rows["sum_loss"][place] = loss
        grown = factor * (2 / loss) ** 3
        for name, degree in (("sum_trace_cov", 1), ("sum_trace_cov_sq", 2), ("sum_trace_cov_grad_sq_norm", 1)):
            rows[name][place] *= grown**degree
    config: dict[str, Any] = {} if size is None else {"num_parameters": size}
    run = make_run(project=project, task="one", config=config)
    batch = make_batch(run_id=str(uuid4()), run=run, stream=make_stream(), measurements=rows)
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text


async def test_size_without_an_effect_is_seen_at_equal_loss(shared_client: httpx.AsyncClient) -> None:
    project = f"sizes {uuid4()}"
    for seed, size in enumerate((1e6, 1e6, 1e7, 1e7, 1e8, 1e8)):
        await run_of_size(shared_client, project, size, seed=seed)
    await run_of_size(shared_client, project, None, seed=9)

    answer = await shared_client.get("/api/v1/comparison/model-size", params={"project": project, "task": "one"})

    found = answer.json()
    assert found["effect"]["factor_per_decade"]["low"] < 1 < found["effect"]["factor_per_decade"]["high"]
    assert found["effect"]["verdict"] == "no_effect_seen"
    assert found["effect"]["loss_power"]["value"] == pytest.approx(-3, abs=0.7)
    assert (found["has_common_losses"], found["reason"]) == (True, None)
    assert len(found["runs"]) == 6
    assert all(len(run["loss"]) == len(run["noise_scale"]) == len(run["is_warm"]) > 5 for run in found["runs"])


async def test_only_tasks_with_runs_of_two_sizes_are_offered(shared_client: httpx.AsyncClient) -> None:
    several, one = f"several {uuid4()}", f"single {uuid4()}"
    for seed, size in enumerate((1e6, 1e6, 1e7)):
        await run_of_size(shared_client, several, size, seed=seed)
    await run_of_size(shared_client, one, 1e6, seed=1)

    found = (await shared_client.get("/api/v1/comparison/sized-tasks")).json()
    other = (await shared_client.get("/api/v1/comparison/sized-tasks", params={"size_key": "width"})).json()

    by_project = {task["project"]: task for task in found["tasks"]}
    assert by_project[several] == {"project": several, "task": "one", "num_runs": 3, "num_sizes": 2}
    assert one not in by_project
    assert other == {"size_key": "width", "tasks": []}


async def test_another_key_of_the_config_may_hold_the_size(shared_client: httpx.AsyncClient) -> None:
    project = f"keys {uuid4()}"
    await run_of_size(shared_client, project, 1e6, seed=1)

    query = {"project": project, "task": "one", "size_key": "width"}
    found = (await shared_client.get("/api/v1/comparison/model-size", params=query)).json()

    assert (found["runs"], found["effect"]) == ([], None)
    assert "size in the config" in found["reason"]


async def test_the_exponent_of_the_learning_rate_is_measured(shared_client: httpx.AsyncClient) -> None:
    project = f"rates {uuid4()}"
    for seed, lr in enumerate((0.05, 0.1, 0.2, 0.4)):
        await run_of_size(shared_client, project, None, seed=seed, lr=lr, factor=0.1 / lr)

    query = {"project": project, "task": "one"}
    found = (await shared_client.get("/api/v1/comparison/temperature", params=query)).json()

    assert found["learning_rate"]["low"] < -1 < found["learning_rate"]["high"]
    assert found["learning_rate"]["value"] == pytest.approx(-1, abs=0.2)
    assert (found["batch"], found["reason"], found["num_runs"]) == (None, None, 4)


@pytest.mark.parametrize("path", ["model-size", "temperature"])
async def test_a_task_must_be_named(shared_client: httpx.AsyncClient, path: str) -> None:
    answer = await shared_client.get(f"/api/v1/comparison/{path}", params={"project": "demo"})

    assert_problem(answer, 422, "invalid-input", field="task")
