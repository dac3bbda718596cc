"""/api/v1/projects/{project}/calibrations: what one server has measured of κ, another one takes in."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from calibrating_sweeps import planted_sweep
from compared_tasks import stored_run
from problems import assert_problem

FAMILY = {"family": "digits of a family"}


async def exported(client: httpx.AsyncClient, project: str) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/projects/{project}/calibrations")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def taken_in(client: httpx.AsyncClient, project: str, body: dict[str, Any]) -> dict[str, int]:
    answer = await client.post(f"/api/v1/projects/{project}/calibrations", json=body)
    assert answer.status_code == 200, answer.text
    counts: dict[str, int] = answer.json()
    return counts


async def kappas(client: httpx.AsyncClient, project: str) -> dict[str, Any]:
    tasks = (await client.get(f"/api/v1/projects/{project}/tasks")).json()["tasks"]
    return {task["name"]: task["kappas"] for task in tasks}


async def kappa_of_run(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/runs/{run_id}/recommendation")).json()["calibration"]
    return found


def elsewhere(body: dict[str, Any]) -> dict[str, Any]:
    """The same as another server would send it, whose sweeps have other ids."""
    return body | {"calibrations": [one | {"id": str(uuid4())} for one in body["calibrations"]]}


@pytest.fixture(scope="module")
async def measured(shared_client: httpx.AsyncClient) -> tuple[str, dict[str, Any]]:
    """A project with a sweep whose κ is 2, and what it exports."""
    project = f"from {uuid4()}"
    await planted_sweep(shared_client, project=project, task="digits", run=FAMILY)
    return project, await exported(shared_client, project)


async def test_what_is_exported_calibrates_the_same_task_elsewhere(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    source, body = measured
    target = f"to {uuid4()}"
    run_id = await stored_run(shared_client, project=target, task="digits", noise_scale=100.0, seed=1)
    before = await kappa_of_run(shared_client, run_id)

    counts = await taken_in(shared_client, target, elsewhere(body))

    assert counts == {"added": 1, "updated": 0, "left": 0}
    assert before["state"] == "uncalibrated"
    there, here = await kappas(shared_client, source), await kappas(shared_client, target)
    assert here["digits"] == there["digits"]
    assert here["digits"][0]["kappa"]["value"] == pytest.approx(2, rel=0.2)
    assert (await kappa_of_run(shared_client, run_id))["state"] == "calibrated"


async def test_another_task_of_the_family_learns_from_it(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    target = f"family {uuid4()}"
    run_id = await stored_run(shared_client, project=target, task="letters", run=FAMILY, noise_scale=100.0, seed=1)

    await taken_in(shared_client, target, elsewhere(measured[1]))

    assert (await kappa_of_run(shared_client, run_id))["measurements"] == 1


async def test_the_same_again_changes_nothing_and_a_newer_one_renews(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    target, body = f"twice {uuid4()}", elsewhere(measured[1])
    await taken_in(shared_client, target, body)
    first = await kappas(shared_client, target)

    again = await taken_in(shared_client, target, await exported(shared_client, target))
    assert again == {"added": 0, "updated": 1, "left": 0}
    assert await kappas(shared_client, target) == first

    newer = [one | {"log_kappa_low": 0.0, "log_kappa_high": 0.0} for one in body["calibrations"]]
    await taken_in(shared_client, target, {"calibrations": newer})
    assert await kappas(shared_client, target) != first


async def test_a_sweep_that_this_server_has_measured_is_left_as_it_is(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    project, body = measured
    wrong = [one | {"log_kappa_low": 3.0, "log_kappa_high": 3.0} for one in body["calibrations"]]

    for into in (project, f"another {uuid4()}"):
        assert await taken_in(shared_client, into, {"calibrations": wrong}) == {"added": 0, "updated": 0, "left": 1}

    assert (await exported(shared_client, project)) == body


async def test_an_imported_sweep_has_no_runs_and_is_listed_only_here(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    target, body = f"listed {uuid4()}", elsewhere(measured[1])
    await taken_in(shared_client, target, body)

    (one,) = (await exported(shared_client, target))["calibrations"]
    assert one["is_imported"]
    assert not measured[1]["calibrations"][0]["is_imported"]
    listed = (await shared_client.get("/api/v1/sweeps", params={"project": target})).json()
    assert (listed["sweeps"], listed["total"]) == ([], 0)
    curve = {"batch_size": 32, "lr": 0.1, "steps": [1, 2], "values": [2.0, 1.0]}
    refused = await shared_client.post(f"/api/v1/sweeps/{one['id']}/runs", json={"runs": [curve]})
    assert_problem(refused, 422, "invalid-input")
    assert "imported" in refused.text

    assert (await shared_client.delete(f"/api/v1/sweeps/{one['id']}")).status_code == 204
    assert (await exported(shared_client, target))["calibrations"] == []


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (
            {"error": None, "critical_batch": None, "critical_batch_low": None, "critical_batch_high": None},
            "says nothing",
        ),
        ({"log_kappa_low": None, "log_kappa_high": None}, "no κ"),
        ({"log_kappa_low": 2.0, "log_kappa_high": 1.0}, "low end"),
        ({"critical_batch": 1.0, "critical_batch_low": 2.0}, "low end"),
        ({"error": float("inf")}, "error"),
        ({"critical_batch": 0.0, "critical_batch_low": 0.0, "critical_batch_high": 0.0}, "critical_batch"),
        ({"critical_batch_low": None}, "both ends"),
        ({"noise_scale": 0.0}, "noise_scale"),
        ({"error": 0.0}, "error"),
        ({"num_runs": 0}, "num_runs"),
        ({"kind": "guess"}, "kind"),
        ({"colour": "red"}, "colour"),
        ({"task": ""}, "task"),
    ],
)
async def test_a_calibration_that_contradicts_itself_is_refused_by_name(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]], change: dict[str, Any], names: str
) -> None:
    (one,) = elsewhere(measured[1])["calibrations"]
    # httpx refuses to write an infinity
    content = json.dumps({"calibrations": [one | change]}).encode()
    answer = await shared_client.post(
        f"/api/v1/projects/refused {uuid4()}/calibrations",
        content=content,
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code in (400, 422), answer.text
    assert names in answer.text


async def test_the_same_id_twice_is_refused(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]]
) -> None:
    (one,) = elsewhere(measured[1])["calibrations"]

    answer = await shared_client.post(
        f"/api/v1/projects/twice {uuid4()}/calibrations", json={"calibrations": [one, one]}
    )

    assert_problem(answer, 422, "invalid-input")
    assert one["id"] in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"error": 1e-9, "squares": 0.0, "run_error": 0.0, "num_runs": 1},
        {"log_kappa_low": None, "log_kappa_high": 100.0},
        {"log_kappa_low": -100.0, "log_kappa_high": -100.0, "error": 1e6},
        {
            "error": None,
            "log_kappa_low": None,
            "log_kappa_high": None,
            "critical_batch": None,
            "critical_batch_high": None,
        },
        {"critical_batch": 1e15, "critical_batch_low": 1e-9, "critical_batch_high": 1e15},
    ],
)
async def test_whatever_is_taken_in_every_answer_that_rests_on_it_is_one(
    shared_client: httpx.AsyncClient, measured: tuple[str, dict[str, Any]], change: dict[str, Any]
) -> None:
    (one,) = elsewhere(measured[1])["calibrations"]
    project = f"unkind {uuid4()}"
    run_id = await stored_run(shared_client, project=project, task="digits", noise_scale=100.0, seed=1)

    await taken_in(shared_client, project, {"calibrations": [one | change]})

    for path in (
        f"projects/{project}/tasks",
        f"projects/{project}/tasks/digits/recommendation",
        f"runs/{run_id}/recommendation",
        f"runs/recommendations?ids={run_id}",
        f"comparison?project={project}",
        f"sweeps/{one['id']}",
        f"sweeps/{one['id']}/critical-batch",
    ):
        answer = await shared_client.get(f"/api/v1/{path}")
        assert answer.status_code < 500, (path, answer.text)
