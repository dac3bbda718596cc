"""The rows of the list: trials behind their sweep, groups, what of them is unfolded, and which runs are to change."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import RUNS
from noisescale_dashboard.answers.common import Decision
from noisescale_dashboard.runs import to_change
from noisescale_dashboard.runs.listing import Listing
from noisescale_dashboard.runs.page import count_words, export_words, range_words
from noisescale_dashboard.runs.view import NO_VIEW, query, searched
from realistic_runs import folds_of, realistic_runs

SWEEP_ID = "00000000-0000-4000-9000-000000000001"
SWEEP = {
    "kind": "sweep", "id": SWEEP_ID, "name": "batches of digits", "num_runs": 2, "batch_low": 256.0,
    "batch_high": 4096.0, "loss": 0.25,
}  # fmt: skip


def view(**changes: Any) -> dict[str, Any]:
    return {"runs-view.data": {**NO_VIEW, "page": 0, **changes}, "runs-cursors.data": [None], "narrow.data": False}


@pytest.fixture
def swept(fake_api: FakeApi) -> FakeApi:
    """Two of the runs are trials of a sweep."""
    fake_api.folds = {RUNS[4].id: SWEEP, RUNS[9].id: SWEEP}
    return fake_api


async def rows(callbacks: Callbacks, **changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await callbacks.post("runs-rows.data", view(**changes)))["runs-rows"]["data"]
    return found


async def test_trials_of_a_sweep_are_one_row_that_leads_to_it(callbacks: Callbacks, swept: FakeApi) -> None:
    changed = await callbacks.post("runs-rows.data", view(sort="name"))

    folded = [row for row in changed["runs-rows"]["data"] if row.get("kind") == "fold"]
    assert [(row["name"], row["count"], row["batch"], row["loss"]) for row in folded] == [
        ("batches of digits", "2 trials", "256 – 4,096", "0.2500")
    ]
    assert (folded[0]["href"], folded[0]["open"], folded[0]["id"]) == (f"/sweeps/{SWEEP_ID}", False, f"s:{SWEEP_ID}")
    assert changed["runs-count"]["children"] == "10 runs in 9 rows"
    assert changed["runs-range"]["children"] == "1 – 9 of 9"


async def test_the_page_speaks_of_runs_and_not_of_trials(callbacks: Callbacks, swept: FakeApi) -> None:
    changed = await callbacks.post("runs-rows.data", view())

    assert changed["runs-sentence"]["children"].startswith("Six would gain from another batch size")


async def test_an_unfolded_row_has_its_trials_below_it(callbacks: Callbacks, swept: FakeApi) -> None:
    found = await rows(callbacks, sort="name", open=f"s:{SWEEP_ID}")

    place = next(i for i, row in enumerate(found) if row.get("kind") == "fold")
    assert found[place]["open"] is True
    assert [(row["name"], row["child"]) for row in found[place + 1 : place + 3]] == [
        ("digits-mlp-b256", True),
        ("resnet50-in1k-s8", True),
    ]
    assert "child" not in found[place + 3]
    assert swept.requests[-1].query_params["sweep"] == SWEEP_ID


async def test_what_is_not_on_the_page_is_not_asked_for(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await rows(callbacks, open=f"s:{SWEEP_ID}")

    assert not any("sweep" in request.query_params for request in fake_api.requests)


async def test_trials_are_hidden_or_a_row_each_as_one_chooses(callbacks: Callbacks, swept: FakeApi) -> None:
    assert len(await rows(callbacks, trials="hide")) == len(RUNS) - 2
    assert len(await rows(callbacks, trials="show")) == len(RUNS)
    assert {row.get("kind") for row in await rows(callbacks, trials="show")} == {None}


async def test_a_file_has_a_line_a_run_also_where_the_list_is_folded(callbacks: Callbacks, swept: FakeApi) -> None:
    answer = await callbacks.client.get("/exports/runs.csv")

    assert len(answer.text.strip().splitlines()) == 1 + len(RUNS)


async def test_groups_are_rows_of_the_table_and_unfold_by_a_condition(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("runs-rows.data", view(group="task", where="config.lr < 1", open="g:char-lm"))

    found = changed["runs-rows"]["data"]
    groups = {row["name"]: row for row in found if row.get("kind") == "fold"}
    assert set(groups) == {"char-lm", "digits"}
    assert (groups["char-lm"]["count"], groups["char-lm"]["noise"], groups["char-lm"]["open"]) == (
        "2 runs",
        "640",
        True,
    )
    asked = fake_api.requests[-1].query_params
    assert asked.getlist("where") == ["config.lr < 1", '"task" = "char-lm"']
    assert changed["runs-sentence"]["children"] == "Grouped by task, largest first; numbers are medians."
    # a page without runs of its own leaves the choices as they were
    assert "runs-group" not in changed or "data" in changed["runs-group"]


async def test_runs_that_do_not_say_the_value_are_a_group_of_their_own(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await rows(callbacks, group="config.hidden", open="n:")

    assert fake_api.paths()[-1] == "/api/v1/runs/summary", "the stand-in has no such group: nothing is asked for"


async def test_conditions_and_searches_are_the_servers(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await rows(callbacks, where="config.lr < 0.1,config.a%2Cb = 2", q="gpt -s2 -s3")

    asked = next(request.query_params for request in fake_api.requests if "where" in request.query_params)
    assert asked.getlist("where") == ["config.lr < 0.1", "config.a,b = 2"]
    assert (asked["q"], asked.getlist("without"), asked["fold"]) == ("gpt", ["s2", "s3"], "true")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("gpt s2", {"q": "gpt s2"}),
        ("/^gpt.*s[23]$/", {"pattern": "^gpt.*s[23]$"}),
        ("-seed3", {"q": "", "without": ["seed3"]}),
        ("a -  b", {"q": "a -  b"}),
        ("a/b", {"q": "a/b"}),
    ],
)
def test_a_search_is_a_part_of_a_name_what_it_has_not_or_a_pattern(text: str, asked: dict[str, Any]) -> None:
    assert searched(text) == asked


async def test_a_condition_that_the_server_refuses_is_said_and_the_rows_stay(callbacks: Callbacks) -> None:
    values = {**view(where="unknown < 1"), "runs-rows.data": [{"id": RUNS[0].id, "stamp": ""}]}
    changed = await callbacks.post("runs-rows.data", values)

    assert "has the unknown field" in str(changed["runs-note"]["children"])
    assert "runs-rows" not in changed
    assert changed["runs-card"]["hidden"] is False


async def test_the_buttons_count_conditions_and_offer_keys_of_configs(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view(where="config.hidden = 64,lr > 0"))

    assert changed["runs-where-words"]["children"] == "Config: 2"
    assert "config.hidden" in changed["runs-where-field"]["data"]
    assert "lr" in changed["runs-where-field"]["data"]


async def test_names_of_a_page_are_short_and_told_apart(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = realistic_runs(60)

    for narrow, at_most in ((False, 27), (True, 24)):
        values = {**view(), "narrow.data": narrow}
        found = (await callbacks.post("runs-rows.data", values))["runs-rows"]["data"]
        short = [row["short"] for row in found]
        assert len(set(short)) == len(found) == 50
        assert max(map(len, short)) <= at_most


async def test_long_names_of_sweeps_have_room_across_empty_columns(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = realistic_runs(60)
    fake_api.folds = folds_of(fake_api.runs)

    short = {row["short"] for row in await rows(callbacks) if row.get("kind") == "fold"}

    assert {len(one) > 40 for one in short} == {True}
    assert len(short) == 3


async def changes(callbacks: Callbacks, **changed: Any) -> dict[str, Any]:
    return await callbacks.post("runs-change.hidden", view(**changed))


async def test_runs_to_change_are_listed_with_what_to_do_the_biggest_saving_first(
    callbacks: Callbacks, swept: FakeApi
) -> None:
    said = await changes(callbacks, project="demo")

    asked = swept.requests[-1].query_params
    assert (asked["sort"], asked["trials"], asked["project"]) == ("-saving", "hide", "demo")
    assert set(asked.getlist("decision")) == {"increase", "decrease", "probably_increase", "probably_decrease"}
    assert said["runs-change-title"]["children"] == "6 runs to change"
    words = json.dumps(said["runs-change-list"], ensure_ascii=False)
    assert "raise 512 → 1,536" in words
    assert "likely (93 %)" in words
    assert f'"data-copy-run": "{RUNS[0].id}"' in words
    assert "3 more" in words


async def test_a_chosen_decision_narrows_the_list_of_changes_too(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await changes(callbacks, decision="decrease")

    assert fake_api.requests[-1].query_params.getlist("decision") == ["decrease"]


async def test_nothing_to_change_hides_the_list(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (replace(RUNS[5]),)

    assert (await changes(callbacks))["runs-change"]["hidden"] is True


@pytest.mark.parametrize(
    ("trainer", "expected"), [("megatron", "Copied for Megatron."), ("plain", "Copied."), (None, "Copied.")]
)
async def test_what_to_paste_for_a_run_is_written_for_the_chosen_trainer(
    callbacks: Callbacks, trainer: str | None, expected: str
) -> None:
    values = {"runs-copy-asked.data": {"id": RUNS[0].id}, "runs-trainer.value": trainer}
    flags = (await callbacks.post("runs-flags.data", values))["runs-flags"]["data"]

    assert flags["said"].startswith(expected)
    assert flags["text"]


async def test_a_run_that_is_gone_is_said_and_nothing_is_copied(callbacks: Callbacks) -> None:
    values = {"runs-copy-asked.data": {"id": "00000000-0000-4000-8000-999999999999"}, "runs-trainer.value": "plain"}
    flags = (await callbacks.post("runs-flags.data", values))["runs-flags"]["data"]

    assert flags["text"] is None
    assert flags["said"].startswith("Not written: ")


@pytest.mark.parametrize(
    ("probability", "saving", "words"),
    [
        (0.97, 0.24, "saves 24 %, sure (97 %)"),
        (0.91, 0.24, "saves 24 %, likely (91 %)"),
        (0.947, 0.24, "saves 24 %, likely (94 %)"),
        (0.995, 0.24, "saves 24 %, sure (more than 99 %)"),
        (0.7, None, "probably (70 %)"),
        (None, 0.24, "saves 24 %"),
        (None, None, ""),
    ],
)
def test_a_gain_says_its_odds_in_the_words_of_the_card(
    probability: float | None, saving: float | None, words: str
) -> None:
    assert to_change.gain(Decision("increase", 64, probability=probability, saving=saving)) == words


def test_changes_are_asked_for_without_trials_whatever_the_list_shows() -> None:
    asked = to_change.query({**NO_VIEW, "trials": "show"})

    assert (asked["trials"], asked["fold"], asked["limit"]) == ("hide", None, to_change.MAX_LISTED)
    assert query({**NO_VIEW, "trials": "show"}, None)["trials"] is None


def test_a_list_that_is_counted_to_ten_thousand_says_that_there_are_more() -> None:
    page = Listing(rows=[{"id": "a"}], runs=(), known=(), total=9_000, num_runs=10_000, is_total_exact=False)

    assert count_words(page) == "over 10,000 runs"
    assert range_words(page, 2) == "101 – 101 of over 9,000"
    assert export_words(page) == "All runs as CSV, over 10,000"
    assert to_change.title(10_000, is_exact=False) == "over 10,000 runs to change"
