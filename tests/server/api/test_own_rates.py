"""Runs of a sweep, whose best rate it knows, place the verdict on the learning rate of the next run of their task."""

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, get_args
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run, make_stream, with_path
from noisescale.ask.asking import RecommendingServer
from noisescale.config import Config
from noisescale_core.advice.learning_rate.rate_coefficients import coefficients
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict
from noisescale_server.api.calibration import NUM_SHARES, PathFamilyName
from sweep_curves import TARGET

BATCH_SIZE, BEST_RATE = 256.0, 0.1
RATES = tuple(BEST_RATE * 2.0**power for power in range(-2, 3))
NUM_STEPS = 601
OFF = 0.8
"""Octaves by which q of this task lies above the published lines."""


def at(octaves: float, *, share: int = 1) -> float:
    """Q of a run so many octaves from its best rate, as runs of this task have it."""
    line = coefficients().families["SGD"].lines["constant"][share]
    return line.offset + line.slope * octaves + OFF


async def stored(
    client: httpx.AsyncClient,
    project: str,
    task: str,
    lr: float,
    *,
    octaves: float,
    end: bool,
    optimizer: str = "SGD",
    config: dict[str, Any] | None = None,
) -> str:
    """The id of a run with the path of one so many octaves from the best rate; its loss falls the slower the more."""
    run_id = str(uuid4())
    rows = with_path(make_measurements(steps=range(NUM_STEPS), lr=lr), octaves=at(octaves))
    steps = 200 * (1 + octaves**2)
    rows["sum_loss"] = [TARGET * ((step + 1) / steps) ** -0.3 for step in range(NUM_STEPS)]
    finish = {"finish": {"seq": rows["seq"][-1] + 1, "status": "finished", "wall_time": 2e9}} if end else {}
    planned = NUM_STEPS if end else 4 * NUM_STEPS
    batch = make_batch(
        run_id=run_id,
        run=make_run(project=project, task=task, planned_steps=planned, family="vision", config=config or {}),
        stream=make_stream(optimizer=optimizer),
        measurements=rows,
        **finish,
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


async def swept(
    client: httpx.AsyncClient, project: str, task: str, *, targets: tuple[float, ...] = (TARGET,), infeasible: int = 0
) -> tuple[str, list[str]]:
    """A sweep over learning rates at one batch size, the highest so many infeasible; ids of it and its runs."""
    sweep_id = await declared(client, project, task, targets)
    runs = [
        await stored(client, project, task, rate, octaves=power, end=True)
        for power, rate in zip(range(-2, 3), RATES, strict=True)
    ]
    await attach(client, sweep_id, runs, infeasible=infeasible)
    return sweep_id, runs


async def declared(client: httpx.AsyncClient, project: str, task: str, targets: tuple[float, ...] = (TARGET,)) -> str:
    body = {"project": project, "task": task, "targets": targets, "optimizer": "SGD"}
    sweep_id: str = (await client.post("/api/v1/sweeps", json=body)).json()["id"]
    return sweep_id


async def attach(client: httpx.AsyncClient, sweep_id: str, runs: list[str], *, infeasible: int = 0) -> None:
    given = [
        {"run_id": run_id, "batch_size": BATCH_SIZE, "lr": rate, "seed": 0}
        for run_id, rate in zip(runs, RATES, strict=True)
    ]
    for one in given[len(given) - infeasible :]:
        one["status"] = "infeasible"
    answer = await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": given})
    assert answer.status_code == 200, answer.text


async def ask(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/learning-rate")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def width(found: dict[str, Any]) -> float:
    return float(found["high"] - found["low"])


async def test_a_sweep_of_the_task_moves_the_verdict_and_narrows_it(shared_client: httpx.AsyncClient) -> None:
    project = f"own rates {uuid4()}"
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)
    before = await ask(shared_client, run_id)

    await swept(shared_client, project, "one")
    after = await ask(shared_client, run_id)

    assert before["calibration"] is None
    assert after["calibration"] == "Calibrated here on 5 runs of this task."
    assert after["reason"].endswith(after["calibration"])
    assert abs(after["octaves"]) < 0.7 * abs(before["octaves"])
    assert width(after) < 0.9 * width(before)
    assert after["ratio"] == before["ratio"]


async def test_runs_at_several_rates_tell_it_without_a_sweep_that_anybody_declared(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"undeclared {uuid4()}"
    for power, rate in zip(range(-2, 3), RATES, strict=True):
        config = {"lr": rate, "depth": 2}
        await stored(shared_client, project, "one", rate, octaves=power, end=True, config=config)

    found = await ask(shared_client, await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False))

    assert found["calibration"] == "Calibrated here on 5 runs of this task."


async def test_a_job_reads_what_the_server_says_as_it_was_said(shared_client: httpx.AsyncClient) -> None:
    project = f"read by a job {uuid4()}"
    await swept(shared_client, project, "one")
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)
    said = await ask(shared_client, run_id)
    http = SimpleNamespace(read=lambda path: (200, json.dumps(said)), close=lambda: None)

    read = RecommendingServer(Config(url="http://fake"), lambda: http).learning_rate_of(run_id)  # type: ignore[arg-type,return-value]

    assert isinstance(read, RateVerdict)
    assert asdict(read) | {"num_updates": None} == {name: said.get(name) for name in asdict(read)}
    assert read.num_updates == said["path"]["num_updates"] > 0


async def test_other_tasks_of_the_family_tell_less_and_other_projects_and_optimizers_nothing(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"family of rates {uuid4()}"
    await swept(shared_client, project, "one")

    own, sister, elsewhere, other_optimizer = [
        await ask(
            shared_client,
            await stored(shared_client, where, task, BEST_RATE, octaves=0.0, end=False, optimizer=optimizer),
        )
        for where, task, optimizer in (
            (project, "one", "SGD"),
            (project, "two", "SGD"),
            (f"other {uuid4()}", "one", "SGD"),
            (project, "one", "AdamW"),
        )
    ]

    assert sister["calibration"] == "Calibrated here on 5 runs of other tasks."
    assert elsewhere["calibration"] is other_optimizer["calibration"] is None
    assert width(own) < width(sister) < width(elsewhere)
    assert own["octaves"] < sister["octaves"] < elsewhere["octaves"]


async def test_what_a_sweep_says_goes_to_another_server_without_its_runs(shared_client: httpx.AsyncClient) -> None:
    here, there = f"from {uuid4()}", f"to {uuid4()}"
    await swept(shared_client, here, "one")
    known, told = [
        await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False) for project in (here, there)
    ]
    (exported,) = (await shared_client.get(f"/api/v1/projects/{here}/calibrations")).json()["calibrations"]

    taken = await shared_client.post(
        f"/api/v1/projects/{there}/calibrations", json={"calibrations": [exported | {"id": str(uuid4())}]}
    )

    assert taken.json() == {"added": 1, "updated": 0, "left": 0}, taken.text
    assert (await ask(shared_client, told))["calibration"] == "Calibrated here on 5 runs of this task."
    assert (await ask(shared_client, told))["octaves"] == pytest.approx((await ask(shared_client, known))["octaves"])


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"family": "Lion"}, "family"),
        ({"octaves": 40.0}, "octaves"),
        ({"ratios": [0.1]}, "ratios"),
        ({"pushes": [0.1, 0.2, "fast", None]}, "pushes"),
        ({"schedules": ["constant", "constant", "constant", "linear"]}, "schedules"),
        ({"error": -1.0}, "error"),
    ],
)
async def test_readings_that_are_none_are_refused_by_name(
    shared_client: httpx.AsyncClient, change: dict[str, Any], names: str
) -> None:
    reading = {
        "run_id": str(uuid4()), "family": "SGD", "schedules": ["constant"] * 4, "octaves": 1.0, "error": 0.1,
        "ratios": [0.1, 0.2, 0.3, None], "pushes": [None] * 4,
    }  # fmt: skip
    said = {"id": str(uuid4()), "task": "one", "optimizer": "sgd", "name": "rates"}
    path = f"/api/v1/projects/readings {uuid4()}/calibrations"

    refused = await shared_client.post(path, json={"calibrations": [said | {"rates": [reading | change]}]})
    taken = await shared_client.post(path, json={"calibrations": [said | {"rates": [reading]}]})

    assert refused.status_code == 422
    assert f"calibrations[0].rates[0].{names}" in refused.text
    assert taken.status_code == 200, taken.text


def test_what_travels_is_read_by_the_families_and_shares_of_the_published_lines() -> None:
    assert set(get_args(PathFamilyName)) == set(coefficients().families)
    assert len(coefficients().progress) == NUM_SHARES


async def test_a_run_of_the_sweep_is_not_judged_by_itself(shared_client: httpx.AsyncClient) -> None:
    project = f"not itself {uuid4()}"
    _, runs = await swept(shared_client, project, "one")

    found = await ask(shared_client, runs[2])

    assert found["calibration"] == "Calibrated here on 4 runs of this task."


async def test_a_run_counts_once_in_however_many_sweeps_it_is(shared_client: httpx.AsyncClient) -> None:
    project = f"twice {uuid4()}"
    _, runs = await swept(shared_client, project, "one")
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)
    once = await ask(shared_client, run_id)

    await attach(shared_client, await declared(shared_client, project, "one"), runs)

    assert (await ask(shared_client, run_id)) == once


async def test_a_run_that_a_sweep_calls_infeasible_says_nothing(shared_client: httpx.AsyncClient) -> None:
    project = f"infeasible {uuid4()}"
    await swept(shared_client, project, "one", infeasible=1)
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)

    assert (await ask(shared_client, run_id))["calibration"] == "Calibrated here on 4 runs of this task."


async def test_the_best_rate_is_that_of_the_hardest_target_that_was_reached(shared_client: httpx.AsyncClient) -> None:
    project = f"hardest {uuid4()}"
    await swept(shared_client, project, "one", targets=(TARGET / 10, TARGET))
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)

    assert (await ask(shared_client, run_id))["calibration"] == "Calibrated here on 5 runs of this task."


async def test_a_sweep_that_is_deleted_takes_back_what_it_said(shared_client: httpx.AsyncClient) -> None:
    project = f"taken back {uuid4()}"
    sweep_id, _ = await swept(shared_client, project, "one")
    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)

    assert (await shared_client.delete(f"/api/v1/sweeps/{sweep_id}")).status_code == 204

    assert (await ask(shared_client, run_id))["calibration"] is None


async def test_a_sweep_whose_best_rate_is_the_last_one_tried_says_nothing(shared_client: httpx.AsyncClient) -> None:
    project = f"edge {uuid4()}"
    sweep_id = await declared(shared_client, project, "one")
    runs = [await stored(shared_client, project, "one", RATES[k], octaves=k - 2.0, end=True) for k in range(3)]
    given = [
        {"run_id": one, "batch_size": BATCH_SIZE, "lr": rate, "seed": 0}
        for one, rate in zip(runs, RATES[:3], strict=True)
    ]
    assert (await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": given})).status_code == 200

    run_id = await stored(shared_client, project, "one", BEST_RATE, octaves=0.0, end=False)

    assert (await ask(shared_client, run_id))["calibration"] is None
