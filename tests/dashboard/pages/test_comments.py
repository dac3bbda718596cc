"""Comments on a run at the foot of its page, and which of the page's buttons its reader sees."""

import json
from typing import Any

import pytest
from dash import html

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_comments import NAMES
from noisescale_dashboard import comments
from noisescale_dashboard.answers.comments import Comment, Comments

LIST = "run-comments-box.hidden"


async def shown(callbacks: Callbacks, fake_api: FakeApi, run_id: str | None = None) -> dict[str, Any]:
    values = {"run-slow-pulse.data": 1.0, "run-id.data": run_id or fake_api.runs[0].id}
    return await callbacks.post(LIST, values, headers={"Cookie": "who=ada"})


async def write(callbacks: Callbacks, fake_api: FakeApi, **change: str) -> dict[str, Any]:
    values = {"run-comment-change.data": change, "run-id.data": fake_api.runs[0].id}
    found: dict[str, Any] = (await callbacks.post("run-comment-done.data", values))["run-comment-done"]["data"]
    return found


def words_of(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False)


def said(*texts: str, total: int | None = None, **fields: Any) -> Comments:
    one = {"id": "1", "author": "Grace", "created_at": "2026-11-26T10:04:30Z", **fields}
    return Comments(tuple(Comment(text=text, **one) for text in texts), len(texts) if total is None else total)


async def test_a_writer_sees_comments_the_form_and_the_names(callbacks: Callbacks, fake_api: FakeApi) -> None:
    found = await shown(callbacks, fake_api)

    assert (found["run-comments-box"]["hidden"], found["run-comment-form"]["hidden"]) == (False, False)
    assert "look\\nat the rate" in words_of(found["run-comments"])
    assert all(f"@{name}" in words_of(found["run-comment-names"]) for name in NAMES)
    assert found["run-actions"]["className"].split()[-2:] == ["may-change", "may-manage"]
    assert fake_api.requests[-1].headers["cookie"] == "who=ada"


async def test_a_comment_is_added_changed_and_deleted(callbacks: Callbacks, fake_api: FakeApi) -> None:
    assert await write(callbacks, fake_api, do="add", text="too large") == {"words": "Added.", "is_done": True}
    comment_id = fake_api.comments[0]["id"]
    await write(callbacks, fake_api, do="edit", id=comment_id, text="far too large")

    assert [one["text"] for one in fake_api.comments] == ["far too large", "@Ada Lovelace: look\nat the rate"]
    assert (await write(callbacks, fake_api, do="delete", id=comment_id))["words"] == "Deleted."
    assert len(fake_api.comments) == 1


async def test_what_is_refused_is_said_and_stays_in_the_field(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing_ends = ("/comments",)
    fake_api.failing_status = 403

    found = await write(callbacks, fake_api, do="add", text="no")

    assert not found["is_done"]
    assert found["words"].startswith("Nothing was changed. ")


async def test_an_id_that_is_none_becomes_no_path(callbacks: Callbacks, fake_api: FakeApi) -> None:
    found = await write(callbacks, fake_api, do="delete", id="../../keys")

    assert (found["is_done"], len(fake_api.comments)) == (False, 1)


async def test_another_sites_page_writes_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {"run-comment-change.data": {"do": "add", "text": "x"}, "run-id.data": fake_api.runs[0].id}

    answer = await callbacks.post("run-comment-done.data", values, headers={"Sec-Fetch-Site": "cross-site"})

    assert (answer, len(fake_api.comments)) == ({}, 1)


async def test_guests_see_neither_comments_nor_buttons(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing_ends = ("/me", "/comments")
    fake_api.failing_status = 403

    found = await shown(callbacks, fake_api)

    assert found["run-comments-box"]["hidden"] is True
    assert found["run-actions"]["className"] == comments.ACTIONS


@pytest.mark.parametrize(
    ("refused", "said"),
    [((), "shell"), (("/me",), "shell guest"), (("/me", "/projects"), "shell guest by-link")],
    ids=["known", "of a public project", "by a link"],
)
async def test_the_frame_says_who_is_a_guest(
    callbacks: Callbacks, fake_api: FakeApi, refused: tuple[str, ...], said: str
) -> None:
    fake_api.failing_ends, fake_api.failing_status = refused, 403

    assert (await callbacks.post("shell.className", {"shell.id": "shell"}))["shell"]["className"] == said


async def test_an_outage_makes_nobody_a_guest(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    assert (await callbacks.post("shell.className", {"shell.id": "shell"}))["shell"]["className"] == "shell"
    assert await shown(callbacks, fake_api) == {}


def test_viewers_see_comments_and_change_none() -> None:
    words = str(comments.listed(said("mine", is_own=True), writes=False, deletes=False))

    assert "mine" in words
    assert "data-comment-edit" not in words
    assert "data-comment-delete" not in words


def test_admins_delete_others_words_and_change_none() -> None:
    words = str(comments.listed(said("theirs"), writes=True, deletes=True))

    assert "data-comment-delete" in words
    assert "data-comment-edit" not in words


def test_what_is_left_out_of_a_long_list_is_counted() -> None:
    assert "12 older ones" in str(comments.listed(said("a", total=13), writes=True, deletes=True))
    assert comments.NONE_YET in str(comments.listed(said(), writes=True, deletes=True))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("@Ada Lovelace, @ada: see", ["@Ada Lovelace", "@ada"]),
        ("mail@Ada and @Adam", []),
        ("(@Ada)", ["@Ada"]),
    ],
)
def test_mentions_are_marked_where_the_server_finds_them(text: str, marked: list[str]) -> None:
    parts = comments.with_mentions(text, ["Ada", "Ada Lovelace"])

    assert [part.children for part in parts if isinstance(part, html.Span)] == marked
    assert "".join(part.children if isinstance(part, html.Span) else str(part) for part in parts) == text


def test_what_becomes_of_a_mention_is_said() -> None:
    assert comments.SHOWN_ALONE in str(comments.names_offered(["Ada"], are_sent=False))
    assert comments.SENT in str(comments.names_offered(["Ada"], are_sent=True))
    assert comments.names_offered([], are_sent=True) == []
