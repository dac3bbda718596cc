"""What is done with chosen runs, and that it can be undone; further columns."""

from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import RUNS, run_json
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.api.transport import is_own_site
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.runs import filters as runs_filters
from noisescale_dashboard.runs import view as runs_view
from noisescale_dashboard.runs.view import NO_VIEW, query

CHOSEN = [{"id": RUNS[0].id, "tags": ["baseline", "bf16"]}, {"id": RUNS[2].id, "tags": ["aug"]}]
IDS = [row["id"] for row in CHOSEN]
VIEW = {**NO_VIEW, "page": 0}


async def press(callbacks: Callbacks, button: str, headers: dict[str, str] | None = None, **states: Any) -> Any:
    """What the store of the last change says after a press of the button."""
    values = {f"{button}.n_clicks": 1, "runs-grid.selectedRows": CHOSEN}
    values |= {name.replace("__", ".").replace("_", "-"): value for name, value in states.items()}
    body = {**callbacks.payload("runs-done.data", values), "changedPropIds": [f"{button}.n_clicks"]}
    answer = await callbacks.client.post("/_dash-update-component", json=body, headers=headers)
    return answer.json()["response"]["runs-done"]["data"] if answer.status_code == 200 else None


async def test_chosen_runs_are_archived_and_come_back(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-archive")

    assert done["words"] == "2 runs archived."
    assert fake_api.archived == set(IDS)
    assert (await press(callbacks, "runs-undo", runs_done__data=done))["words"] == "Undone."
    assert fake_api.archived == set()


async def test_a_tag_is_added_to_those_without_it_and_only_theirs_is_undone(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    done = await press(callbacks, "runs-add-tag", runs_new_tag__value=" aug ")

    assert done["words"] == "1 run tagged aug."
    assert fake_api.tags[IDS[0]] == ["baseline", "bf16", "aug"]
    await press(callbacks, "runs-undo", runs_done__data=done)
    assert fake_api.tags[IDS[0]] == ["baseline", "bf16"]
    assert IDS[1] not in fake_api.tags


async def test_a_tag_is_removed_and_comes_back(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-remove-tag", runs_new_tag__value="aug")

    assert done["words"] == "Tag aug removed from 1 run."
    assert fake_api.tags[IDS[1]] == []
    await press(callbacks, "runs-undo", runs_done__data=done)
    assert fake_api.tags[IDS[1]] == ["aug"]


async def test_deleted_runs_lie_in_the_archive_until_the_time_for_undoing_is_over(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    done = await press(callbacks, "runs-delete")

    assert (fake_api.archived, fake_api.deleted) == (set(IDS), [])
    purge = next(d["output"] for d in callbacks.server_side() if [i["id"] for i in d["inputs"]] == ["runs-purge"])
    gone = await callbacks.post(purge, {"runs-purge.data": 1, "runs-done.data": done})
    assert gone["runs-done"]["data"]["words"] == "2 runs deleted."
    assert sorted(fake_api.deleted) == sorted(IDS)


async def test_a_deletion_that_was_undone_deletes_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-delete")

    after = await press(callbacks, "runs-undo", runs_done__data=done)

    assert fake_api.archived == set()
    assert fake_api.deleted == []
    assert "doomed" not in after


async def test_another_change_ends_the_time_for_undoing_a_deletion(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-delete")

    await press(callbacks, "runs-archive", runs_done__data=done)

    assert sorted(fake_api.deleted) == sorted(IDS)


async def test_a_foreign_page_changes_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-archive", headers={"Sec-Fetch-Site": "cross-site"})

    assert done is None
    assert fake_api.archived == set()
    assert is_own_site({"Sec-Fetch-Site": "same-origin"})


async def test_a_refusal_is_said(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    done = await press(callbacks, "runs-archive")

    assert done["words"].startswith("Nothing was changed. Service unavailable")
    assert "undo" not in done


async def test_without_a_word_there_is_no_tag(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "runs-add-tag", runs_new_tag__value="  ")

    assert done["words"] == "Write the tag first."
    assert fake_api.tags == {}


async def test_chosen_columns_show_what_the_run_and_its_config_say(callbacks: Callbacks) -> None:
    values = {"runs-view.data": {**VIEW, "cols": "task,config.hidden,nothing"}, "runs-cursors.data": [None]}

    changed = await callbacks.post("runs-rows.data", {**values, "narrow.data": False})

    row = changed["runs-rows"]["data"][0]
    assert row["more"] == {"more task": "char-lm", "more config.hidden": "64"}
    assert [column["headerName"] for column in changed["runs-grid"]["columnDefs"][-2:]] == ["Task", "hidden"]
    assert {"value": "config.hidden", "label": "hidden"} in changed["runs-cols"]["data"]


def test_a_comma_in_a_key_survives_the_address() -> None:
    assert runs_columns.chosen("config.a%2Cb,config.100%25,task,task") == ["config.a,b", "config.100%", "task"]


@pytest.mark.parametrize(
    ("value", "words"), [("adam", "adam"), (0.1, "0.1"), ([1, 2], "[1, 2]"), (None, None), (False, "false")]
)
def test_values_of_a_config_are_written_as_in_json(value: Any, words: str | None) -> None:
    assert runs_columns.config_words(value) == words


@pytest.mark.parametrize("name", runs_columns.OWN)
def test_every_own_column_has_words_for_a_run(name: str) -> None:
    said = {"remarks": "a first try\n\nwith warm-up", "family": "transformer", "planned_steps": 20_000}

    assert runs_columns.words(run(run_json(RUNS[0]) | said), name)


def test_remarks_are_one_line_in_the_list() -> None:
    assert runs_columns.words(run(run_json(RUNS[0]) | {"remarks": "a first try\n\nwith warm-up"}), "remarks") == (
        "a first try with warm-up"
    )


def test_the_list_shows_what_sent_data_lately_unless_asked_otherwise() -> None:
    assert query(VIEW, None)["updated_after"] is not None
    assert query({**VIEW, "since": "any"}, None)["updated_after"] is None
    assert query({**VIEW, "shelf": "archived"}, None)["archived"] is True
    assert set(runs_filters.SINCE_WORDS) | {"any"} == set(runs_view.SINCE)
