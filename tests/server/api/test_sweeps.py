"""/api/v1/sweeps: create, list, read, attach, delete."""

import re
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.services.sweeps import sweeps
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


class TestNames:
    async def test_a_sweep_that_nobody_has_named_is_called_by_task_kind_and_moment(
        self, client: httpx.AsyncClient
    ) -> None:
        run = (await client.post("/api/v1/runs", json={"project": "names", "task": "digits"})).json()
        sweep = (await client.post(SWEEPS, json={"project": "names", "task": "digits"})).json()
        left = {"kind": "branch", "run_id": run["id"], "details": {"step": 1200}}
        branch = (await client.post(SWEEPS, json={"project": "names", "task": "digits", **left})).json()

        moment = r"\d\d [A-Z][a-z]{2} \d\d:\d\d"
        assert re.fullmatch(rf"digits sweep, {moment}", sweep["name"])
        assert re.fullmatch(rf"digits branch at step 1,200, {moment}", branch["name"])
        listed = (await client.get(SWEEPS, params={"project": "names"})).json()["sweeps"]
        assert {one["name"] for one in listed} == {sweep["name"], branch["name"]}

    async def test_a_sweep_is_renamed_and_stays_so(self, client: httpx.AsyncClient) -> None:
        sweep = (await client.post(SWEEPS, json={"project": "names"})).json()
        path = f"{SWEEPS}/{sweep['id']}"

        renamed = await client.patch(path, json={"name": "warm-up tried twice"})

        assert (renamed.status_code, renamed.json()["name"]) == (200, "warm-up tried twice")
        assert (await client.get(path)).json()["name"] == "warm-up tried twice"

    @pytest.mark.parametrize(
        "body", [{"name": ""}, {"name": "   "}, {"name": None}, {}, {"name": "x", "kind": "branch"}]
    )
    async def test_a_name_that_is_none_is_refused_and_the_old_one_stays(
        self, client: httpx.AsyncClient, body: dict[str, Any]
    ) -> None:
        sweep = (await client.post(SWEEPS, json={"project": "names", "name": "kept"})).json()
        path = f"{SWEEPS}/{sweep['id']}"

        assert_problem(await client.patch(path, json=body), 422, "invalid-input")
        assert (await client.get(path)).json()["name"] == "kept"

    async def test_a_sweep_that_is_not_there_is_not_renamed(self, client: httpx.AsyncClient) -> None:
        assert_problem(await client.patch(f"{SWEEPS}/{uuid4()}", json={"name": "x"}), 404, "sweep-not-found")


NEAR_ONE = {
    "loss": 1.0,
    "batch_sizes": [16.0, 64.0],
    "value": 40.0,
    "low": 20.0,
    "high": 90.0,
    "level": 0.95,
    "spread": 0.15,
}
BETWEEN = {"losses": [NEAR_ONE]}


class TestNoiseScaleBetweenRuns:
    async def test_it_is_a_kind_of_its_own_with_its_flag(self, client: httpx.AsyncClient) -> None:
        sweep_id = await new_sweep(client, noise_scale_between_runs=BETWEEN)

        sweep = (await client.get(f"{SWEEPS}/{sweep_id}")).json()

        assert sweep["noise_scale_between_runs"] == {
            "kind": "between_runs", "flag": "different_parameters", "losses": [NEAR_ONE], "missing": None,
        }  # fmt: skip
        assert sweep["details"] == FULL["details"]

    async def test_the_same_sweep_again_has_the_newest_of_them_and_without_one_keeps_it(
        self, client: httpx.AsyncClient
    ) -> None:
        sweep_id = await new_sweep(client, noise_scale_between_runs=BETWEEN)
        grown = {"losses": [{**NEAR_ONE, "value": 50.0}]}

        again = await client.post(SWEEPS, json={**FULL, "id": sweep_id, "noise_scale_between_runs": grown})
        silent = await client.post(SWEEPS, json={**FULL, "id": sweep_id})

        for answer in (again, silent):
            assert answer.status_code == 200
            assert answer.json()["noise_scale_between_runs"]["losses"][0]["value"] == 50.0

    @pytest.mark.parametrize(
        ("between", "said"),
        [
            ({"losses": []}, "has losses, or says what is missing"),
            ({"losses": [NEAR_ONE], "missing": "runs"}, "has losses, or says what is missing"),
            ({"losses": [{**NEAR_ONE, "value": 100.0}]}, "outside of its interval"),
            ({"losses": [{**NEAR_ONE, "high": None}]}, "outside of its interval"),
            ({"losses": [NEAR_ONE], "kind": "simple"}, "kind"),
            ({"losses": [NEAR_ONE], "flag": ""}, "flag"),
        ],
    )
    async def test_what_cannot_be_one_is_refused(
        self, shared_client: httpx.AsyncClient, between: dict[str, Any], said: str
    ) -> None:
        answer = await shared_client.post(SWEEPS, json={**FULL, "noise_scale_between_runs": between})

        assert answer.status_code == 422
        assert said in answer.text


async def test_runs_that_a_full_sweep_has_already_may_come_again(client: httpx.AsyncClient, monkeypatch) -> None:
    monkeypatch.setattr(sweeps, "MAX_RUNS", 3)
    sweep_id = await new_sweep(client)
    runs = [curve(id=str(uuid4())) for _ in range(3)]

    first, again = await attach(client, sweep_id, *runs), await attach(client, sweep_id, *runs)
    more = await attach(client, sweep_id, curve())

    assert (first.status_code, again.status_code, more.status_code) == (200, 200, 422)
    assert len((await client.get(f"{SWEEPS}/{sweep_id}")).json()["runs"]) == 3
