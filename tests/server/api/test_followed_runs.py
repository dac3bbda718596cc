"""A finished run whose batch changed measures κ by its outcome, held against a sweep of its task."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from compared_tasks import rows_of
from factories import make_batch, make_run, make_stream
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED, State
from noisescale_server.analysis.calibration.followed import Stretch
from noisescale_server.services.calibration.followed import best_rate, course_of
from noisescale_server.services.series.windows import Windows
from noisescale_server.storage.retention import folding
from noisescale_server.storage.series.series import PointColumns
from sweep_curves import CRITICAL_BATCH, MIN_STEPS, TARGET

SIZES, RATES = (64, 256, 1024), (0.07, 0.1)
NOISE_SCALE = 128.0
"""Of every run; B_crit of the sweep is 256, so κ is 2."""

CONFIG = {"depth": 2}
FOLLOWED = [64.0] * 200 + [512.0] * 250


async def finished(
    client: httpx.AsyncClient,
    project: str,
    batches: Sequence[float],
    *,
    lr: float = 0.1,
    critical_batch: float = CRITICAL_BATCH,
    described: dict[str, Any] | None = None,
    optimizer: str = "SGD",
    metric: str | None = None,
) -> str:
    """The id of a run at these batches, whose loss follows its progress and meets the target after S_min of it.

    With a metric it is that which does, at every fourth step, and the training loss is of no use.
    """
    run_id, num_steps = str(uuid4()), len(batches)
    run = {"config": {"lr": lr, **CONFIG}, "task": "digits", **(described or {})}
    rows = rows_of(num_steps=num_steps, noise_scale=NOISE_SCALE, lr=lr)
    done = accumulate((lr / 0.1) / (1 + critical_batch / batch) for batch in batches)
    values = [TARGET * (progress / MIN_STEPS) ** -0.3 for progress in done]
    rows |= {
        "global_batch": list(batches),
        "examples": list(accumulate(map(int, batches))),
        "sum_loss": values if metric is None else [1.0] * num_steps,
    }
    parts: dict[str, Any] = {}
    seq, at = rows["seq"][-1] + 1, range(0, num_steps, 4)
    if metric is not None:
        times, names = [1e9 + step for step in at], [metric] * len(at)
        parts["metrics"] = {
            "seq": [*range(seq, seq + len(at))],
            "step": [*at],
            "wall_time": times,
            "name": names,
            "value": values[::4],
        }
        seq += len(at)
    end = {"seq": seq, "status": "finished", "wall_time": 2e9}
    stream = make_stream(optimizer=optimizer)
    batch = make_batch(
        run_id=run_id, run=make_run(project=project, **run), stream=stream, measurements=rows, finish=end, **parts
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


async def swept(client: httpx.AsyncClient, project: str, **run: Any) -> list[str]:
    """Six runs that make a sweep by themselves, each a tenth longer than it takes to the target."""
    num_steps = {
        (size, lr): round(1.1 * MIN_STEPS * (1 + CRITICAL_BATCH / size) * 0.1 / lr) for size in SIZES for lr in RATES
    }
    return [await finished(client, project, [float(size)] * num, lr=lr, **run) for (size, lr), num in num_steps.items()]


async def calibrations(client: httpx.AsyncClient, project: str) -> dict[str, list[dict[str, Any]]]:
    """What the project's rows say, by their kind."""
    found = (await client.get(f"/api/v1/projects/{project}/calibrations")).raise_for_status().json()["calibrations"]
    return {kind: [one for one in found if one["kind"] == kind] for kind in ("sweep", "branch", "followed")}


async def followed(client: httpx.AsyncClient, project: str) -> list[dict[str, Any]]:
    """What its tasks say of runs that are held against sweeps."""
    tasks = (await client.get(f"/api/v1/projects/{project}/tasks")).raise_for_status().json()["tasks"]
    return [one for task in tasks for one in task["followed"]]


async def test_a_sweep_and_a_run_whose_batch_changed_give_the_kappa_that_was_put_in(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"followed {uuid4()}"
    await swept(shared_client, project)

    run_id = await finished(shared_client, project, FOLLOWED)

    found = await calibrations(shared_client, project)
    (sweep,), (one,) = found["sweep"], found["followed"]
    assert one["log_kappa_low"] == one["log_kappa_high"] == pytest.approx(math.log(2), abs=0.1)
    assert sweep["log_kappa_low"] == pytest.approx(math.log(2), abs=0.1)
    assert 0 < one["error"] < 0.3
    assert one["num_runs"] == 1
    assert (one["task"], one["optimizer"], one["target"]) == (sweep["task"], sweep["optimizer"], sweep["target"])
    advice = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).json()["calibration"]
    assert advice["text"].startswith("Calibrated here on 1 sweep and 1 followed run: κ ")
    assert advice["measurements"] == 2
    (said,) = await followed(shared_client, project)
    assert (said["run_id"], said["sweep_id"], said["missing"]) == (run_id, sweep["id"], None)
    assert said["kappa"]["low"] < 2 < said["kappa"]["high"]
    assert said["min_steps"] < said["steps"] < len(FOLLOWED)
    assert said["kappa"]["value"] == pytest.approx(2, rel=0.1)


async def test_a_run_that_needed_more_steps_says_a_larger_kappa(shared_client: httpx.AsyncClient) -> None:
    project = f"larger {uuid4()}"
    await swept(shared_client, project)

    await finished(shared_client, project, FOLLOWED, critical_batch=5 * NOISE_SCALE)

    (one,) = (await calibrations(shared_client, project))["followed"]
    assert one["log_kappa_low"] == pytest.approx(math.log(5), abs=0.1)


async def test_it_is_measured_by_the_metric_of_the_sweep_whose_values_all_stay(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    """Folding an old run thins its metrics out, but not the one by which it is measured."""
    project = f"metric {uuid4()}"
    await swept(shared_client, project, metric="val_loss")

    run_id = await finished(shared_client, project, FOLLOWED, metric="val_loss")

    (one,) = (await calibrations(shared_client, project))["followed"]
    assert one["metric"] == "val_loss"
    assert one["log_kappa_low"] == pytest.approx(math.log(2), abs=0.1)
    async with shared_app.state.sessions() as session:
        assert await folding.swept_metrics(session, UUID(run_id)) == ["val_loss"]


async def test_it_is_shown_as_no_sweep(shared_client: httpx.AsyncClient) -> None:
    project = f"no sweep {uuid4()}"
    runs = await swept(shared_client, project)

    run_id = await finished(shared_client, project, FOLLOWED)

    (row,) = (await calibrations(shared_client, project))["followed"]
    for asked in ({"project": project}, {"project": project, "run_id": run_id}):
        listed = (await shared_client.get("/api/v1/sweeps", params=asked)).json()
        assert row["id"] not in [one["id"] for one in listed["sweeps"]]
    (task,) = (await shared_client.get(f"/api/v1/projects/{project}/tasks")).json()["tasks"]
    assert (task["num_sweeps"], task["num_branches"], len(task["sweeps"])) == (1, 0, 1)
    shown = (await shared_client.get("/api/v1/runs", params={"project": project, "fold": "true"})).json()
    assert run_id in [one["id"] for one in shown["runs"]]
    assert not {run_id} & set(runs)
    alone = await shared_client.get(f"/api/v1/sweeps/{row['id']}")
    assert (alone.status_code, alone.json()["kind"], alone.json()["runs"]) == (200, "followed", [])
    refused = await shared_client.post(f"/api/v1/sweeps/{row['id']}/runs", json={"runs": [{"run_id": run_id}]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "sweep_id"
    body = {"project": project, "kind": "followed"}
    assert (await shared_client.post("/api/v1/sweeps", json=body)).status_code == 422


async def test_the_sweep_that_comes_later_takes_the_run_in(shared_client: httpx.AsyncClient) -> None:
    project = f"later {uuid4()}"
    await finished(shared_client, project, FOLLOWED)
    assert await followed(shared_client, project) == []

    await swept(shared_client, project)

    assert len((await calibrations(shared_client, project))["followed"]) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"described": {"config": {"lr": 0.1, "depth": 3}}}, None),
        ({"described": {"config": {"lr": 0.1}}}, None),
        ({"described": {"task": "letters"}}, None),
        ({"optimizer": "AdamW"}, None),
        ({"batches": [256.0] * 300}, None),
        ({"batches": FOLLOWED[:250]}, "did not reach"),
        ({"lr": 0.03, "batches": [*FOLLOWED, *FOLLOWED[-250:] * 3]}, "learning rate at the target, 0.03"),
        ({"critical_batch": 0.0}, None),
    ],
    ids=["depth", "says nothing", "task", "optimizer", "steady", "unreached", "rate", "as fast as S_min"],
)
async def test_what_is_no_outcome_of_the_same_training_is_left_out_with_its_reason(
    shared_client: httpx.AsyncClient, change: dict[str, Any], says: str | None
) -> None:
    project = f"left out {uuid4()}"
    await swept(shared_client, project)

    await finished(shared_client, project, **{"batches": FOLLOWED, **change})

    assert [one for one in (await calibrations(shared_client, project))["followed"] if one["log_kappa_low"]] == []
    said = await followed(shared_client, project)
    assert [one["kappa"] for one in said if says] == ([None] if says else [])
    if says:
        assert says in said[0]["missing"]


async def test_how_a_config_says_that_the_batch_changes_is_no_other_training(shared_client: httpx.AsyncClient) -> None:
    project = f"said {uuid4()}"
    await swept(shared_client, project)
    config = {"lr": 0.1, **CONFIG, "follow": True, "batch_schedule": {"64": 250}}

    await finished(shared_client, project, FOLLOWED, described={"config": config})

    assert len((await calibrations(shared_client, project))["followed"]) == 1


async def test_several_runs_share_the_error_of_the_sweep(shared_client: httpx.AsyncClient) -> None:
    project = f"several {uuid4()}"
    await swept(shared_client, project)
    await finished(shared_client, project, FOLLOWED)
    (alone,) = (await calibrations(shared_client, project))["followed"]

    await finished(shared_client, project, FOLLOWED)

    both = (await calibrations(shared_client, project))["followed"]
    assert len({one["id"] for one in both}) == 2
    assert both[0]["error"] == both[1]["error"] >= alone["error"]


def windows(batches: Sequence[float | None], scales: Sequence[float | None]) -> Windows:
    """Windows of ten steps with these batches and resolved noise scales; the last ends at a learning rate of 0.2."""
    num = len(batches)
    points = PointColumns(
        point=range(num),
        num_updates=[10.0] * num,
        sum_global_batch=[10 * (batch or 0.0) for batch in batches],
        num_global_batch=[10 if batch else 0 for batch in batches],
        step_last=[10 * place + 9 for place in range(num)],
        lr_last=[0.1] * (num - 1) + [0.2],
    )
    estimates = [
        NOTHING_MEASURED
        if scale is None
        else replace(
            NOTHING_MEASURED, state=State.RESOLVED, value=scale, low=scale / 1.2, high=scale * 1.2, reason=None
        )
        for scale in scales
    ]
    return Windows(0, points, estimates, False)


def test_between_resolved_windows_the_last_one_counts_and_before_the_first_the_first() -> None:
    course = course_of(windows([64.0, 64.0, None, 256.0, 256.0], [None, 90.0, None, 120.0, None]))

    assert course.stretches == (
        Stretch(10.0, 64.0, 90.0),
        Stretch(10.0, 64.0, 90.0),
        Stretch(10.0, 64.0, 90.0),
        Stretch(10.0, 256.0, 120.0),
        Stretch(10.0, 256.0, 120.0),
    )
    assert (course.learning_rate, course.mean_batch) == (0.2, pytest.approx(140.8))
    assert course.noise_scale == pytest.approx(105.0)
    assert course.noise_scale_error == pytest.approx(math.log(1.2) / 1.959964, rel=1e-6)


def test_without_a_resolved_window_there_is_no_course() -> None:
    assert course_of(windows([64.0, 64.0], [None, None])).stretches == ()


def test_the_best_rate_lies_between_those_of_the_sweep_on_log_scales_and_is_the_last_beyond() -> None:
    points = [
        SimpleNamespace(batch_size=size, lr=lr, average=SimpleNamespace(steps=SimpleNamespace(steps=steps)))
        for size, lr, steps in ((16.0, 0.1, 900.0), (64.0, 0.3, None), (256.0, 0.4, 200.0))
    ]
    sweep: Any = SimpleNamespace(points=points)

    rates = [best_rate(sweep, batch) for batch in (4.0, 16.0, 64.0, 256.0, 4096.0)]

    assert rates == pytest.approx([0.1, 0.1, 0.2, 0.4, 0.4])
    assert best_rate(SimpleNamespace(points=points[1:2]), 64.0) is None  # type: ignore[arg-type]


async def _run(client: httpx.AsyncClient, project: str, run_id: str) -> httpx.Response:
    return await client.delete(f"/api/v1/runs/{run_id}")


async def _sweep(client: httpx.AsyncClient, project: str, run_id: str) -> httpx.Response:
    (sweep,) = (await calibrations(client, project))["sweep"]
    return await client.delete(f"/api/v1/sweeps/{sweep['id']}")


async def _attached(client: httpx.AsyncClient, project: str, run_id: str) -> httpx.Response:
    sweep_id = (await client.post("/api/v1/sweeps", json={"project": project, "task": "digits"})).json()["id"]
    given = {"run_id": run_id, "batch_size": 300, "lr": 0.1}
    return await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [given]})


async def _moved(client: httpx.AsyncClient, project: str, run_id: str) -> httpx.Response:
    return await client.patch(f"/api/v1/runs/{run_id}", json={"task": "letters"})


async def _target(client: httpx.AsyncClient, project: str, run_id: str) -> httpx.Response:
    """Another fit: only one batch size is left."""
    for run in (await client.get("/api/v1/runs", params={"project": project})).json()["runs"]:
        if run["id"] != run_id and run["global_batch"] != 64.0:
            answer = await client.delete(f"/api/v1/runs/{run['id']}")
    return answer


@pytest.mark.parametrize("gone", [_run, _sweep, _attached, _moved, _target])
async def test_what_it_rested_on_is_gone_and_so_is_what_it_said(
    shared_client: httpx.AsyncClient, gone: Callable[..., Any]
) -> None:
    project = f"gone {uuid4()}"
    await swept(shared_client, project)
    run_id = await finished(shared_client, project, FOLLOWED)
    assert len(await followed(shared_client, project)) == 1

    answer = await gone(shared_client, project, run_id)

    assert answer.status_code in (200, 204), answer.text
    assert await followed(shared_client, project) == []


async def test_it_is_held_against_the_newest_sweep_and_after_that_is_gone_against_the_one_before(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"newest {uuid4()}"
    runs = await swept(shared_client, project)
    await finished(shared_client, project, FOLLOWED)
    (before,) = await followed(shared_client, project)
    body = {"project": project, "task": "digits", "targets": [0.55], "optimizer": "SGD"}
    sweep_id = (await shared_client.post("/api/v1/sweeps", json=body)).json()["id"]

    given = {"runs": [{"run_id": run_id} for run_id in runs]}
    (await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json=given)).raise_for_status()

    (newest,) = await followed(shared_client, project)
    assert (newest["id"], newest["sweep_id"], newest["target"]) == (before["id"], sweep_id, 0.55)
    (await shared_client.delete(f"/api/v1/sweeps/{sweep_id}")).raise_for_status()
    (after,) = await followed(shared_client, project)
    assert (after["sweep_id"], after["kappa"]["value"]) == (before["sweep_id"], pytest.approx(before["kappa"]["value"]))


async def test_it_goes_to_another_server_once_and_names_its_kind(shared_client: httpx.AsyncClient) -> None:
    project, target = f"here {uuid4()}", f"there {uuid4()}"
    await swept(shared_client, project)
    await finished(shared_client, project, FOLLOWED)
    body = (await shared_client.get(f"/api/v1/projects/{project}/calibrations")).json()

    own = await shared_client.post(f"/api/v1/projects/{project}/calibrations", json=body)
    fresh = {"calibrations": [one | {"id": str(uuid4())} for one in body["calibrations"]]}
    taken = await shared_client.post(f"/api/v1/projects/{target}/calibrations", json=fresh)

    assert own.json() == {"added": 0, "updated": 0, "left": 2}
    assert taken.json() == {"added": 2, "updated": 0, "left": 0}
    run_id = await finished(shared_client, target, [256.0] * 400)
    advice = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).json()["calibration"]
    assert advice["text"].startswith("Calibrated here on 1 sweep and 1 followed run: κ ")
