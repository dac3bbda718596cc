"""/api/v1/projects/{project}/baseline: one run of a project is pinned, and others are compared to it."""

from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from problems import assert_problem
from stored_runs import store_run

BASELINE = "/api/v1/projects/team/vision/baseline"


@pytest.fixture
async def run_id(app: FastAPI) -> UUID:
    return await store_run(app, project="team/vision", name="b2048")


async def pinned(client: httpx.AsyncClient) -> str | None:
    found = (await client.get(BASELINE)).json()["baseline"]
    return None if found is None else str(found["run_id"])


async def marked(client: httpx.AsyncClient) -> list[str]:
    return [run["id"] for run in (await client.get("/api/v1/runs")).json()["runs"] if run["is_baseline"]]


async def test_a_pinned_run_is_the_baseline_of_its_project_and_marked_in_lists(
    client: httpx.AsyncClient, app: FastAPI, run_id: UUID
) -> None:
    await store_run(app, project="team/vision")
    assert (await pinned(client), await marked(client)) == (None, [])

    answer = await client.put(BASELINE, json={"run_id": str(run_id)})

    assert answer.status_code == 200
    assert (answer.json()["baseline"]["run_id"], answer.json()["baseline"]["name"]) == (str(run_id), "b2048")
    assert (await pinned(client), await marked(client)) == (str(run_id), [str(run_id)])
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["is_baseline"] is True


async def test_another_pin_takes_the_place_of_the_one_before(
    client: httpx.AsyncClient, app: FastAPI, run_id: UUID
) -> None:
    other = await store_run(app, project="team/vision")
    for one in (run_id, other):
        assert (await client.put(BASELINE, json={"run_id": str(one)})).status_code == 200

    assert (await pinned(client), await marked(client)) == (str(other), [str(other)])


async def test_each_project_has_a_baseline_of_its_own(client: httpx.AsyncClient, app: FastAPI, run_id: UUID) -> None:
    other = await store_run(app, project="other")
    await client.put(BASELINE, json={"run_id": str(run_id)})
    await client.put("/api/v1/projects/other/baseline", json={"run_id": str(other)})

    assert set(await marked(client)) == {str(run_id), str(other)}


async def test_nothing_is_pinned_after_unpinning_and_once_more_is_no_error(
    client: httpx.AsyncClient, run_id: UUID
) -> None:
    await client.put(BASELINE, json={"run_id": str(run_id)})

    assert [(await client.delete(BASELINE)).status_code for _ in range(2)] == [204, 204]
    assert (await pinned(client), await marked(client)) == (None, [])


async def test_a_deleted_run_is_no_baseline_and_an_archived_one_stays(client: httpx.AsyncClient, run_id: UUID) -> None:
    await client.put(BASELINE, json={"run_id": str(run_id)})

    await client.patch(f"/api/v1/runs/{run_id}", json={"archived": True})
    assert await pinned(client) == str(run_id)
    await client.delete(f"/api/v1/runs/{run_id}")
    assert await pinned(client) is None


async def test_what_cannot_be_pinned_is_refused(client: httpx.AsyncClient, app: FastAPI, run_id: UUID) -> None:
    foreign = await store_run(app, project="other")

    answer = await client.put(BASELINE, json={"run_id": str(foreign)})
    assert_problem(answer, 422, "invalid-input", field="run_id")
    assert "pin one of 'team/vision'" in answer.json()["errors"][0]["message"]
    assert_problem(await client.put(BASELINE, json={"run_id": str(uuid4())}), 404, "run-not-found")
    assert_problem(await client.put(BASELINE, json={"run_id": "x"}), 422, "invalid-input", field="run_id")
    assert_problem(await client.get("/api/v1/projects/nothing/baseline"), 404, "project-not-found")
    assert await pinned(client) is None


async def test_the_audit_log_says_who_pinned_what(client: httpx.AsyncClient, run_id: UUID) -> None:
    await client.put(BASELINE, json={"run_id": str(run_id)})
    await client.delete(BASELINE)

    entries = (await client.get("/api/v1/audit?limit=2")).json()["entries"]
    assert [(one["action"], one["details"]["run"]) for one in entries] == [
        ("baseline unpinned", str(run_id)),
        ("baseline pinned", str(run_id)),
    ]
