"""Views that the team shares, in the header of every page; and the switch of the project beside them."""

import json
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from noisescale_dashboard.answers.projects import SharedView
from noisescale_dashboard.shell import team_views
from realistic_runs import realistic_runs


async def change(callbacks: Callbacks, wanted: dict[str, Any] | None, project: str | None = "vision") -> dict[str, Any]:
    values = {"team-views-change.data": wanted, "project.value": project}
    answer = await callbacks.post("team-views-done.data", values)
    found: dict[str, Any] = answer["team-views-done"]["data"] if answer else {}
    return found


async def listed(callbacks: Callbacks, project: str | None) -> tuple[str, bool]:
    answer = await callbacks.post("team-views-list.children", {"project.value": project})
    words = json.dumps(answer["team-views-list"]["children"], ensure_ascii=False)
    return words, answer["team-views-form"]["hidden"]


async def test_a_view_is_shared_listed_renamed_deleted_and_comes_back(callbacks: Callbacks, fake_api: FakeApi) -> None:
    made = await change(callbacks, {"do": "add", "name": "Too small", "page": "runs", "query": "decision=increase"})
    assert made["words"] == "Shared as Too small."
    words, is_hidden = await listed(callbacks, "vision")
    assert "/runs?decision=increase&project=vision" in words
    assert "Runs · Ada" in words
    assert not is_hidden

    view_id = fake_api.views[0]["id"]
    await change(callbacks, {"do": "rename", "id": view_id, "name": "To raise"})
    assert [one["name"] for one in fake_api.views] == ["To raise"]
    gone = await change(callbacks, {"do": "delete", "id": view_id})
    assert (gone["words"], fake_api.views) == ("Deleted.", [])
    await change(callbacks, gone["undo"])
    assert [(one["name"], one["query"]) for one in fake_api.views] == [("To raise", "decision=increase")]


async def test_without_a_project_the_menu_says_to_choose_one(callbacks: Callbacks, fake_api: FakeApi) -> None:
    for project in (None, ""):
        words, is_hidden = await listed(callbacks, project)
        assert "Choose a project" in words
        assert is_hidden
    assert fake_api.requests == []
    assert await change(callbacks, {"do": "add", "name": "a", "page": "runs", "query": ""}, project="") == {}


async def test_what_the_server_refuses_is_said(callbacks: Callbacks, fake_api: FakeApi) -> None:
    wanted = {"do": "add", "name": "a", "page": "runs", "query": ""}
    await change(callbacks, wanted)

    again = await change(callbacks, wanted)

    assert again["words"].startswith("Not done. name: is that of another view")
    assert "is_done" not in again
    fake_api.failing = True
    words, is_hidden = await listed(callbacks, "vision")
    assert "Not loaded" in words
    assert is_hidden


async def test_a_foreign_page_shares_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {
        "team-views-change.data": {"do": "add", "name": "a", "page": "runs", "query": ""},
        "project.value": "vision",
    }
    await callbacks.post("team-views-done.data", values, headers={"Sec-Fetch-Site": "cross-site"})

    assert fake_api.views == []


@pytest.mark.parametrize(
    ("page", "query", "expected"),
    [("runs", "q=a%20b", "/runs?q=a%20b&project=team%2Fa"), ("overview", "", "/?project=team%2Fa")],
)
def test_a_view_leads_to_its_page_in_its_project(page: str, query: str, expected: str) -> None:
    assert team_views.address(SharedView("1", "a", "Ada", page, query), "team/a") == expected


async def test_the_switch_offers_all_projects_and_each_of_them(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = realistic_runs(12)

    answer = await callbacks.post("project.data", {"project.id": "project"})

    assert [one["label"] for one in answer["project"]["data"]] == [
        "All projects", "games", "language", "speech", "toys", "vision",
    ]  # fmt: skip
    assert answer["project-box"]["hidden"] is False


async def test_one_project_needs_no_switch(callbacks: Callbacks) -> None:
    answer = await callbacks.post("project.data", {"project.id": "project"})

    assert answer["project-box"]["hidden"] is True
