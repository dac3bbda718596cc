"""/api/v1/sweeps: create, list, read, attach, delete."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from problems import assert_problem
from stored_runs import resolved, store_run

SWEEPS = "/api/v1/sweeps"

FULL = {
    "project": "demo",
    "task": "digits",
    "name": "digits at eight batch sizes",
    "metric": "eval_loss",
    "goal": "min",
    "targets": [0.5, 0.3],
    "unit": "images",
    "optimizer": "SGD",
    "details": {"budget": 1e6},
}


async def new_sweep(client: httpx.AsyncClient, **changes: Any) -> str:
    answer = await client.post(SWEEPS, json={**FULL, **changes})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def curve(**changes: Any) -> dict[str, Any]:
    return {"batch_size": 32, "lr": 0.1, "seed": 0, "steps": [0, 10, 20], "values": [2.0, 1.0, 0.4], **changes}


async def attach(client: httpx.AsyncClient, sweep_id: str, *runs: dict[str, Any]) -> httpx.Response:
    return await client.post(f"{SWEEPS}/{sweep_id}/runs", json={"runs": list(runs)})


class TestCreate:
    async def test_everything_that_was_sent_comes_back(self, client: httpx.AsyncClient) -> None:
        sweep_id = await new_sweep(client)

        sweep = (await client.get(f"{SWEEPS}/{sweep_id}")).json()

        assert {name: sweep[name] for name in FULL} == FULL
        assert (sweep["kind"], sweep["run_id"], sweep["num_runs"], sweep["runs"]) == ("sweep", None, 0, [])

    async def test_the_same_id_again_gives_the_same_sweep(self, client: httpx.AsyncClient) -> None:
        sweep_id = await new_sweep(client, id=str(uuid4()))

        again = await client.post(SWEEPS, json={**FULL, "id": sweep_id, "name": "other"})

        assert (again.status_code, again.json()["name"]) == (200, FULL["name"])

    async def test_an_id_of_another_project_is_a_conflict(self, client: httpx.AsyncClient) -> None:
        sweep_id = await new_sweep(client)

        answer = await client.post(SWEEPS, json={**FULL, "id": sweep_id, "project": "other"})

        assert_problem(answer, 409, "sweep-id-taken")

    async def test_branches_belong_to_a_run_of_the_project(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_id = str(await store_run(app))

        sweep_id = await new_sweep(client, kind="branch", run_id=run_id)

        found = (await client.get(SWEEPS, params={"run_id": run_id})).json()["sweeps"]
        assert [(sweep["id"], sweep["run_id"]) for sweep in found] == [(sweep_id, run_id)]
        strange = await client.post(SWEEPS, json={**FULL, "kind": "branch", "run_id": str(uuid4())})
        assert_problem(strange, 404, "run-not-found")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"goal": "most"}, "goal"),
            ({"targets": [0.1] * 33}, "targets"),
            ({"targets": [1e200]}, "targets[0]"),
            ({"kind": "branch"}, "body"),
            ({"run_id": str(uuid4())}, "body"),
            ({"colour": "red"}, "colour"),
        ],
    )
    async def test_a_field_that_cannot_be_accepted_is_named(
        self, shared_client: httpx.AsyncClient, changes: dict[str, Any], field: str
    ) -> None:
        answer = await shared_client.post(SWEEPS, json={**FULL, **changes})

        assert_problem(answer, 422, "invalid-input", field=field)


class TestAttach:
    async def test_curves_come_back_by_batch_size_and_learning_rate(self, client: httpx.AsyncClient) -> None:
        sweep_id = await new_sweep(client)

        answer = await attach(client, sweep_id, curve(batch_size=64), curve(), curve(lr=0.05, status="infeasible"))

        runs = answer.json()["runs"]
        assert [(run["batch_size"], run["lr"], run["status"]) for run in runs] == [
            (32, 0.05, "infeasible"),
            (32, 0.1, "complete"),
            (64, 0.1, "complete"),
        ]
        assert (runs[1]["steps"], runs[1]["values"], runs[1]["is_stored"]) == ([0, 10, 20], [2.0, 1.0, 0.4], False)
        assert answer.json()["num_runs"] == 3

    async def test_a_stored_run_brings_its_batch_size_and_learning_rate(
        self, app: FastAPI, client: httpx.AsyncClient
    ) -> None:
        run_id = str(await store_run(app, **resolved(batch=250.0)))
        sweep_id = await new_sweep(client)

        answer = await attach(client, sweep_id, {"run_id": run_id})

        (run,) = answer.json()["runs"]
        assert (run["run_id"], run["is_stored"], run["batch_size"], run["lr"]) == (run_id, True, 250.0, 0.1)

    async def test_the_same_run_again_is_replaced(self, client: httpx.AsyncClient) -> None:
        sweep_id, run_id = await new_sweep(client), str(uuid4())
        await attach(client, sweep_id, curve(id=run_id, status="incomplete", steps=[0], values=[2.0]))

        answer = await attach(client, sweep_id, curve(id=run_id))

        assert [(run["status"], run["steps"]) for run in answer.json()["runs"]] == [("complete", [0, 10, 20])]

    async def test_a_run_of_another_project_is_not_found(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_id = str(await store_run(app, project="other", **resolved()))
        sweep_id = await new_sweep(client)

        answer = await attach(client, sweep_id, {"run_id": run_id})

        assert_problem(answer, 404, "run-not-found")

    async def test_a_run_that_logged_no_batch_size_needs_one(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_id = str(await store_run(app))
        sweep_id = await new_sweep(client)

        answer = await attach(client, sweep_id, {"run_id": run_id, "lr": 0.1})

        assert_problem(answer, 422, "invalid-input", field="runs[0].batch_size")

    @pytest.mark.parametrize(
        ("run", "field"),
        [
            (curve(steps=[0, 10]), "runs[0]"),
            (curve(steps=[0, 20, 10]), "runs[0]"),
            (curve(steps=[], values=[]), "runs[0]"),
            (curve(run_id=str(uuid4())), "runs[0]"),
            (curve(batch_size=0), "runs[0].batch_size"),
            (curve(status="fine"), "runs[0].status"),
        ],
    )
    async def test_a_run_that_cannot_be_accepted_is_named(
        self, shared_client: httpx.AsyncClient, run: dict[str, Any], field: str
    ) -> None:
        sweep_id = await new_sweep(shared_client)

        answer = await attach(shared_client, sweep_id, run)

        assert_problem(answer, 422, "invalid-input", field=field)

    async def test_an_unknown_sweep_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await attach(shared_client, str(uuid4()), curve()), 404, "sweep-not-found")


class TestList:
    async def test_pages_hold_every_sweep_once_newest_first(self, client: httpx.AsyncClient) -> None:
        made = [await new_sweep(client, name=f"sweep {number}") for number in range(3)]

        first = (await client.get(SWEEPS, params={"limit": 2})).json()
        second = (await client.get(SWEEPS, params={"limit": 2, "cursor": first["next_cursor"]})).json()

        assert [sweep["id"] for sweep in first["sweeps"] + second["sweeps"]] == made[::-1]
        assert (first["total"], second["next_cursor"]) == (3, None)

    async def test_they_are_filtered_by_project_task_and_kind(self, client: httpx.AsyncClient) -> None:
        wanted = await new_sweep(client, task="mine")
        await new_sweep(client)
        await new_sweep(client, project="other", task="mine")

        found = await client.get(SWEEPS, params={"project": "demo", "task": "mine", "kind": "sweep"})

        assert [sweep["id"] for sweep in found.json()["sweeps"]] == [wanted]
        assert found.json()["total"] == 1


class TestDelete:
    async def test_a_sweep_goes_and_its_stored_run_stays(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        run_id = await store_run(app, **resolved())
        sweep_id = await new_sweep(client)
        await attach(client, sweep_id, {"run_id": str(run_id)}, curve())

        answer = await client.delete(f"{SWEEPS}/{sweep_id}")

        assert answer.status_code == 204
        assert_problem(await client.get(f"{SWEEPS}/{sweep_id}"), 404, "sweep-not-found")
        assert (await client.get(f"/api/v1/runs/{run_id}")).status_code == 200

    async def test_a_deleted_run_leaves_the_sweep_and_takes_its_branches_along(
        self, app: FastAPI, client: httpx.AsyncClient
    ) -> None:
        run_id = str(await store_run(app, **resolved()))
        sweep_id = await new_sweep(client)
        branches = await new_sweep(client, kind="branch", run_id=run_id)
        await attach(client, sweep_id, {"run_id": run_id}, curve())
        await attach(client, branches, curve())

        await client.delete(f"/api/v1/runs/{run_id}")

        assert [run["is_stored"] for run in (await client.get(f"{SWEEPS}/{sweep_id}")).json()["runs"]] == [False]
        assert_problem(await client.get(f"{SWEEPS}/{branches}"), 404, "sweep-not-found")

    async def test_an_unknown_sweep_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.delete(f"{SWEEPS}/{uuid4()}"), 404, "sweep-not-found")
