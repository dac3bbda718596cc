"""/api/v1/runs/{run_id}/comments: what people say about a run, whom they mention, and whose words they are."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.services.comments import mentioned
from principals import OURS, Team, new_key, new_person, running_team
from problems import assert_problem
from stored_runs import store_run


@pytest.fixture
async def run_id(app: FastAPI) -> UUID:
    return await store_run(app, project="demo", name="a run")


def at(run_id: UUID, comment_id: str | UUID = "") -> str:
    return f"/api/v1/runs/{run_id}/comments" + (f"/{comment_id}" if comment_id else "")


async def say(client: httpx.AsyncClient, run_id: UUID, text: str) -> dict[str, Any]:
    answer = await client.post(at(run_id), json={"text": text})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_a_comment_is_kept_with_its_author_and_listed_newest_first(
    client: httpx.AsyncClient, run_id: UUID
) -> None:
    first, second = await say(client, run_id, "the rate is too high"), await say(client, run_id, "so it is\n\nindeed")

    found = (await client.get(at(run_id))).json()
    assert found["comments"] == [second, first]
    assert (found["total"], found["next_cursor"], found["mentionable"]) == (2, None, [])
    assert (first["author"], first["edited_at"], first["is_own"]) == ("the user who started this server", None, True)


async def test_comments_come_in_pages(client: httpx.AsyncClient, run_id: UUID) -> None:
    said = [(await say(client, run_id, str(number)))["id"] for number in range(5)]

    seen, cursor = [], None
    for _ in range(3):
        page = (await client.get(at(run_id), params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [one["id"] for one in page["comments"]]
        assert page["total"] == 5
        cursor = page["next_cursor"]
    assert (seen, cursor) == (said[::-1], None)
    assert_problem(await client.get(at(run_id), params={"cursor": "x"}), 422, "invalid-input", field="cursor")


async def test_other_words_keep_the_place_and_say_when(client: httpx.AsyncClient, run_id: UUID) -> None:
    first = await say(client, run_id, "tpyo")
    await say(client, run_id, "newer")

    changed = await client.patch(at(run_id, first["id"]), json={"text": "typo"})

    assert (changed.status_code, changed.json()["text"]) == (200, "typo")
    assert changed.json()["edited_at"] is not None
    listed = (await client.get(at(run_id))).json()["comments"]
    assert [one["text"] for one in listed] == ["newer", "typo"]


@pytest.mark.parametrize("text", ["", "  \n ", "a" * 4001, "bell\a", "nul\x00"])
async def test_what_is_no_comment_is_refused(client: httpx.AsyncClient, run_id: UUID, text: str) -> None:
    assert_problem(await client.post(at(run_id), json={"text": text}), 422, "invalid-input", field="text")


async def test_a_comment_or_run_that_is_not_there_is_said_so(client: httpx.AsyncClient, run_id: UUID) -> None:
    nobodys = at(run_id, uuid4())

    assert_problem(await client.patch(nobodys, json={"text": "a"}), 404, "comment-not-found")
    assert_problem(await client.delete(nobodys), 404, "comment-not-found")
    assert_problem(await client.get(at(uuid4())), 404, "run-not-found")
    assert_problem(await client.post(at(uuid4()), json={"text": "a"}), 404, "run-not-found")


async def test_a_run_has_so_many_comments_at_most(
    client: httpx.AsyncClient, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisescale_server.services.comments.MAX_COMMENTS", 1)
    await say(client, run_id, "one")

    answer = await client.post(at(run_id), json={"text": "two"})

    assert_problem(answer, 422, "invalid-input", field="text")
    assert "delete one first" in answer.json()["errors"][0]["message"]


async def test_comments_go_with_their_run(client: httpx.AsyncClient, run_id: UUID, app: FastAPI) -> None:
    other = await store_run(app, project="demo")
    await say(client, run_id, "gone")
    kept = await say(client, other, "kept")

    assert (await client.delete(f"/api/v1/runs/{run_id}")).status_code == 204

    assert_problem(await client.get(at(run_id)), 404, "run-not-found")
    assert (await client.get(at(other))).json()["comments"] == [kept]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@Ada look", ["Ada"]),
        ("see @ada lovelace, @Grace.", ["Ada Lovelace", "Grace"]),
        ("@Ada @Ada Lovelace @Ada", ["Ada", "Ada Lovelace"]),
        ("mail ada@Ada.example", []),
        ("@Adam @nobody @", []),
        ("(@Grace)", ["Grace"]),
    ],
)
def test_a_mention_is_an_at_and_the_whole_name_of_somebody(text: str, found: list[str]) -> None:
    assert mentioned(text, ["Ada", "Ada Lovelace", "Grace"]) == found


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


@pytest.fixture
async def our_run(team: Team) -> UUID:
    return await store_run(team.app, project=OURS, name="ours")


async def as_(team: Team, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
    async with team.client(who) as client:
        return await client.request(method, path, json=body)


async def test_nobody_changes_anothers_words_and_admins_take_them_away(team: Team, our_run: UUID) -> None:
    said = (await as_(team, "member", "POST", at(our_run), {"text": "mine"})).json()
    path = at(our_run, said["id"])

    for who in ("admin", "administrator", "admin key"):
        refused = await as_(team, who, "PATCH", path, {"text": "yours"})
        assert_problem(refused, 403, "not-allowed")
        assert "only member may change" in refused.json()["detail"]
    foreign = (await as_(team, "admin", "POST", at(our_run), {"text": "an admin's"})).json()
    assert_problem(await as_(team, "member", "DELETE", at(our_run, foreign["id"])), 403, "not-allowed")
    assert (await as_(team, "admin", "DELETE", path)).status_code == 204
    seen = (await as_(team, "viewer", "GET", at(our_run))).json()
    assert [(one["text"], one["is_own"]) for one in seen["comments"]] == [("an admin's", False)]


async def test_a_person_writes_with_a_key_as_oneself(team: Team, our_run: UUID) -> None:
    owner = await new_person(team.app, "Grace Hopper", {OURS: "admin"})
    key = await new_key(team.app, "admin", OURS, owner=owner)
    async with team.client("nobody") as client:
        client.headers["Authorization"] = f"Bearer {key}"
        said = await say(client, our_run, "from a script")
        changed = await client.patch(at(our_run, said["id"]), json={"text": "from the same one"})

    assert (changed.status_code, changed.json()["is_own"]) == (200, True)


async def test_people_of_the_project_are_mentioned_and_nobody_else(team: Team, our_run: UUID) -> None:
    await new_person(team.app, "Ada Lovelace", {OURS: "viewer"})
    await new_person(team.app, "Charles", {"theirs": "member"})

    said = (await as_(team, "member", "POST", at(our_run), {"text": "@Ada Lovelace and @Charles, @disabled"})).json()

    assert said["mentions"] == ["Ada Lovelace"]
    offered = (await as_(team, "member", "GET", at(our_run))).json()["mentionable"]
    assert {"Ada Lovelace", "administrator", "viewer"} <= set(offered)
    assert not {"Charles", "disabled", "their admin"} & set(offered)
    assert (await as_(team, "viewer", "GET", at(our_run))).json()["mentionable"] == []


async def test_the_audit_log_says_who_wrote_changed_and_deleted_a_comment(team: Team, our_run: UUID) -> None:
    said = (await as_(team, "member", "POST", at(our_run), {"text": "secret words"})).json()
    await as_(team, "member", "PATCH", at(our_run, said["id"]), {"text": "other secret words"})
    await as_(team, "admin", "DELETE", at(our_run, said["id"]))

    entries = (await as_(team, "admin", "GET", "/api/v1/audit?limit=3")).json()["entries"]
    assert [(one["actor_name"], one["action"]) for one in entries] == [
        ("admin", "comment deleted"),
        ("member", "comment changed"),
        ("member", "comment added"),
    ]
    assert {one["details"]["comment"] for one in entries} == {said["id"]}
    assert "secret words" not in str(entries)
