"""/api/v1/projects/{project}/views: views that a team shares are listed, renamed and deleted by all of it."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from problems import assert_problem
from stored_runs import store_run

VIEWS = "/api/v1/projects/demo/views"
VIEW = {"name": "Too small", "page": "runs", "query": "decision=increase&q=a%20b"}


@pytest.fixture(autouse=True)
async def demo(app: FastAPI) -> None:
    await store_run(app, project="demo")


async def names(client: httpx.AsyncClient, at: str = VIEWS) -> list[str]:
    return [one["name"] for one in (await client.get(at)).json()["views"]]


async def test_a_view_is_shared_with_its_author_and_what_its_page_shows(client: httpx.AsyncClient) -> None:
    made = await client.post(VIEWS, json=VIEW)

    assert made.status_code == 201
    found = (await client.get(VIEWS)).json()["views"]
    assert found == [made.json()]
    assert {name: found[0][name] for name in VIEW} == VIEW
    assert found[0]["author"] == "the user who started this server"


async def test_views_are_listed_by_name_and_belong_to_their_project(client: httpx.AsyncClient, app: FastAPI) -> None:
    await store_run(app, project="team/vision")
    for name in ("b", "a"):
        await client.post(VIEWS, json={**VIEW, "name": name})
    await client.post("/api/v1/projects/team/vision/views", json={**VIEW, "name": "a"})

    assert await names(client) == ["a", "b"]
    assert await names(client, "/api/v1/projects/team/vision/views") == ["a"]


async def test_a_view_is_renamed_and_deleted(client: httpx.AsyncClient) -> None:
    view_id = (await client.post(VIEWS, json=VIEW)).json()["id"]

    renamed = await client.patch(f"{VIEWS}/{view_id}", json={"name": "To raise"})
    assert (renamed.status_code, renamed.json()["name"], renamed.json()["query"]) == (200, "To raise", VIEW["query"])
    assert (await client.patch(f"{VIEWS}/{view_id}", json={"name": "To raise"})).status_code == 200
    assert (await client.delete(f"{VIEWS}/{view_id}")).status_code == 204
    assert await names(client) == []


async def test_a_name_is_given_once_in_a_project(client: httpx.AsyncClient) -> None:
    await client.post(VIEWS, json=VIEW)
    other = (await client.post(VIEWS, json={**VIEW, "name": "other"})).json()["id"]

    for answer in (
        await client.post(VIEWS, json=VIEW),
        await client.patch(f"{VIEWS}/{other}", json={"name": VIEW["name"]}),
    ):
        assert_problem(answer, 422, "invalid-input", field="name")
        assert "take another name" in answer.json()["errors"][0]["message"]
    assert await names(client) == ["Too small", "other"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"page": "settings"}, "page"),
        ({"query": "q=two words"}, "query"),
        ({"query": "q=" + "a" * 4000}, "query"),
        ({"name": " "}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_is_no_view_is_refused(client: httpx.AsyncClient, change: dict[str, Any], field: str) -> None:
    assert_problem(await client.post(VIEWS, json={**VIEW, **change}), 422, "invalid-input", field=field)


async def test_a_view_or_project_that_is_not_there_is_said_so(client: httpx.AsyncClient) -> None:
    nobodys = f"{VIEWS}/{uuid4()}"

    assert_problem(await client.patch(nobodys, json={"name": "a"}), 404, "view-not-found")
    assert_problem(await client.delete(nobodys), 404, "view-not-found")
    assert_problem(await client.get("/api/v1/projects/nothing/views"), 404, "project-not-found")


async def test_another_projects_view_is_out_of_reach(client: httpx.AsyncClient, app: FastAPI) -> None:
    await store_run(app, project="other")
    view_id = (await client.post(VIEWS, json=VIEW)).json()["id"]

    assert_problem(await client.delete(f"/api/v1/projects/other/views/{view_id}"), 404, "view-not-found")
    assert await names(client) == ["Too small"]


async def test_a_project_shares_a_hundred_views_at_most(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisescale_server.services.views.MAX_VIEWS", 1)
    await client.post(VIEWS, json=VIEW)

    answer = await client.post(VIEWS, json={**VIEW, "name": "more"})

    assert_problem(answer, 422, "invalid-input", field="name")
    assert "delete one first" in answer.json()["errors"][0]["message"]
