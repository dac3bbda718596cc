"""Finished runs of one task at several batch sizes and rates make a sweep by themselves, and calibrate the next run."""

from collections.abc import Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from compared_tasks import rows_of
from factories import STARTED_AT, make_batch, make_run, make_stream
from noisescale_server.services.sweeps.gathered import as_swept, swept
from problems import assert_problem
from sweep_curves import CRITICAL_BATCH, MIN_STEPS, TARGET

SIZES, RATES = (64, 256, 1024), (0.05, 0.1)


def rows(batch_size: int, lr: float) -> dict[str, Any]:
    """Rows whose loss meets the target after the steps of theory at 0.1, and after twice as many at half of it."""
    found = rows_of(num_steps=1000, noise_scale=128.0, global_batch=float(batch_size), lr=lr)
    steps = MIN_STEPS * (1 + CRITICAL_BATCH / batch_size) * (0.1 / lr)
    found["sum_loss"] = [TARGET * ((step + 1) / steps) ** -0.3 for step in range(1000)]
    return found


async def finished_run(
    client: httpx.AsyncClient,
    project: str,
    batch_size: int,
    lr: float,
    *,
    config: dict[str, Any] | None = None,
    batches: Sequence[float] | None = None,
) -> str:
    """The id of a run at one batch, or at those of each of its thousand steps."""
    run_id = str(uuid4())
    described = make_run(project=project, task="digits", config={"lr": lr, "depth": 2} if config is None else config)
    found = rows(batch_size, lr)
    if batches is not None:
        found |= {"global_batch": list(batches), "examples": list(accumulate(map(int, batches)))}
    end = {"seq": found["seq"][-1] + 1, "status": "finished", "wall_time": 2e9}
    batch = make_batch(run_id=run_id, run=described, stream=make_stream(), measurements=found, finish=end)
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


async def sweeps_of(client: httpx.AsyncClient, project: str) -> list[dict[str, Any]]:
    listed = (await client.get("/api/v1/sweeps", params={"project": project})).json()["sweeps"]
    return [(await client.get(f"/api/v1/sweeps/{one['id']}")).json() for one in listed]


async def test_runs_at_three_batch_sizes_and_two_rates_each_become_a_sweep_that_calibrates(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"gathered {uuid4()}"
    runs = [await finished_run(shared_client, project, size, lr) for size in SIZES for lr in RATES]

    (sweep,) = await sweeps_of(shared_client, project)

    assert sweep["name"] == "Runs of digits"
    assert {run["run_id"] for run in sweep["runs"]} == set(runs)
    advice = (await shared_client.get(f"/api/v1/runs/{runs[0]}/recommendation")).json()
    assert (advice["calibration"]["state"], advice["calibration"]["measurements"]) == ("calibrated", 1)
    (task,) = (await shared_client.get(f"/api/v1/projects/{project}/tasks")).json()["tasks"]
    assert task["sweeps"][0]["critical_batch"]["value"] == pytest.approx(CRITICAL_BATCH, rel=0.2)


CHANGED = [64.0] * 500 + [256.0] * 500
RESTS = [32.0 if step % 10 == 9 else 256.0 for step in range(1000)]
"""Epochs of ten steps, the last of an eighth of the batch: nine hundredths of the examples are missing."""


async def test_a_run_whose_batch_changed_is_no_run_at_its_last_batch(shared_client: httpx.AsyncClient) -> None:
    project = f"changed {uuid4()}"
    kept = [await finished_run(shared_client, project, size, lr) for size in SIZES for lr in RATES]

    changed = await finished_run(shared_client, project, 256, 0.1, batches=CHANGED)

    (sweep,) = await sweeps_of(shared_client, project)
    assert {run["run_id"] for run in sweep["runs"]} == set(kept)
    assert (await shared_client.get(f"/api/v1/runs/{changed}")).json()["status"] == "finished"


async def test_a_run_whose_batch_changed_makes_no_sweep(shared_client: httpx.AsyncClient) -> None:
    project = f"too few {uuid4()}"
    for size in SIZES:
        for lr in RATES:
            changes = size == 256 and lr == 0.1
            await finished_run(shared_client, project, size, lr, batches=CHANGED if changes else None)

    assert await sweeps_of(shared_client, project) == []


async def test_rests_of_epochs_are_no_change(shared_client: httpx.AsyncClient) -> None:
    project = f"rests {uuid4()}"
    for size in SIZES:
        for lr in RATES:
            await finished_run(shared_client, project, size, lr)

    late = await finished_run(shared_client, project, 256, 0.1, batches=RESTS)

    (sweep,) = await sweeps_of(shared_client, project)
    assert {run["run_id"]: run["batch_size"] for run in sweep["runs"]}[late] == 256.0


async def test_a_run_that_is_resumed_at_another_batch_leaves_the_sweep_that_made_itself(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"resumed {uuid4()}"
    runs = [await finished_run(shared_client, project, size, lr) for size in SIZES for lr in RATES]
    again = {**rows(64, 0.1), "step": list(range(500, 1500)), "global_batch": [1024.0] * 1000}
    end = {"seq": again["seq"][-1] + 1, "status": "finished", "wall_time": 2e9}
    described = make_run(project=project, task="digits", config={"lr": 0.1, "depth": 2})
    stream = make_stream(started_at=STARTED_AT + 5_000)
    batch = make_batch(run_id=runs[1], run=described, stream=stream, measurements=again, finish=end)

    assert (await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).status_code == 200

    (sweep,) = await sweeps_of(shared_client, project)
    assert {run["run_id"] for run in sweep["runs"]} == set(runs) - {runs[1]}


async def test_by_hand_a_run_whose_batch_changed_needs_a_batch_size(shared_client: httpx.AsyncClient) -> None:
    project = f"by hand {uuid4()}"
    changed = await finished_run(shared_client, project, 256, 0.1, batches=CHANGED)
    steady = await finished_run(shared_client, project, 256, 0.1, batches=RESTS)
    sweep_id = (await shared_client.post("/api/v1/sweeps", json={"project": project, "task": "digits"})).json()["id"]
    path = f"/api/v1/sweeps/{sweep_id}/runs"

    refused = await shared_client.post(path, json={"runs": [{"run_id": steady}, {"run_id": changed}]})

    assert_problem(refused, 422, "invalid-input")
    (problem,) = refused.json()["errors"]
    assert problem["field"] == "runs[1].batch_size"
    assert "changed while it trained" in problem["message"]
    assert "Give the batch size" in problem["message"]
    assert problem["value"] == "256.0"
    given = [{"run_id": steady}, {"run_id": changed, "batch_size": 160}]
    attached = await shared_client.post(path, json={"runs": given})
    assert {run["run_id"]: run["batch_size"] for run in attached.json()["runs"]} == {steady: 256.0, changed: 160.0}


async def test_a_run_that_finishes_later_joins_it(shared_client: httpx.AsyncClient) -> None:
    project = f"joined {uuid4()}"
    for size in SIZES:
        for lr in RATES:
            await finished_run(shared_client, project, size, lr)

    late = await finished_run(shared_client, project, 4096, 0.1)

    (sweep,) = await sweeps_of(shared_client, project)
    assert len(sweep["runs"]) == 7
    assert late in {run["run_id"] for run in sweep["runs"]}


async def test_runs_at_three_rates_of_one_batch_size_become_a_sweep_that_knows_the_best_of_them(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"rates {uuid4()}"
    runs = [await finished_run(shared_client, project, 64, lr) for lr in (0.05, 0.1, 0.07)]

    (sweep,) = await sweeps_of(shared_client, project)

    assert {run["run_id"] for run in sweep["runs"]} == set(runs)
    told = (await shared_client.get(f"/api/v1/sweeps/{sweep['id']}/learning-rates")).json()
    (best,) = told["rates"]
    assert (best["batch_size"], best["lr"], best["num_rates"], best["is_at_grid_edge"]) == (64.0, 0.1, 3, True)
    advice = (await shared_client.get(f"/api/v1/runs/{runs[0]}/recommendation")).json()
    assert advice["calibration"]["state"] == "uncalibrated"


@pytest.mark.parametrize(
    "settings",
    [
        [(size, 0.1, 2) for size in (*SIZES, 16, 4096)],
        [(size, lr, 2) for size in SIZES[:2] for lr in RATES],
        [(64, lr, int(1 / lr)) for lr in (0.05, 0.1, 0.2)],
        [(size, lr, size) for size in SIZES for lr in RATES],
    ],
    ids=["one rate each", "two batch sizes", "rates of configs that differ", "configs that differ"],
)
async def test_runs_that_say_nothing_together_stay_apart(
    shared_client: httpx.AsyncClient, settings: list[tuple[int, float, int]]
) -> None:
    project = f"apart {uuid4()}"
    for size, lr, depth in settings:
        await finished_run(shared_client, project, size, lr, config={"lr": lr, "depth": depth})

    assert await sweeps_of(shared_client, project) == []


async def test_runs_whose_configs_say_nothing_of_what_is_trained_stay_apart(shared_client: httpx.AsyncClient) -> None:
    """All programs of one person may be of one task, without a config that tells them apart."""
    project = f"unsaid {uuid4()}"
    for size in SIZES:
        for lr in RATES:
            await finished_run(shared_client, project, size, lr, config={"lr": lr, "argv": [str(size)], "seed": 1})

    assert await sweeps_of(shared_client, project) == []


def run(batch_size: float | None, latest_lr: float | None = None, **config: Any) -> Any:
    return as_swept(SimpleNamespace(id=uuid4(), latest_lr=latest_lr, config=config), batch_size)  # type: ignore[arg-type]


def test_the_rate_is_the_configs_as_a_schedule_ends_near_zero_and_else_the_last_logged() -> None:
    runs = [run(float(size), 1e-9, learning_rate=lr) for size in SIZES for lr in RATES]
    assert {one.lr for one in swept(runs)} == set(RATES)

    runs = [run(float(size), lr) for size in SIZES for lr in RATES]
    assert {one.lr for one in swept(runs)} == set(RATES)


@pytest.mark.parametrize(
    "odd", [{"lr": True}, {"lr": "0.1"}, {"lr": float("nan")}, {"lr": -1.0}, {"lr": 0}, {"lr": float("inf")}]
)
def test_a_rate_that_is_none_leaves_the_run_out(odd: dict[str, Any]) -> None:
    assert run(64.0, None, **odd) is run(None, 0.1) is run(0.0, 0.1) is None


def test_a_seed_is_kept_where_it_is_a_number() -> None:
    runs = [run(float(size), lr, seed=seed) for size in SIZES for lr, seed in zip(RATES, (3, "three"), strict=True)]

    assert {one.seed for one in swept(runs)} == {3, None}
