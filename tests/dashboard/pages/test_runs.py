"""The page of runs: rows, filters, paging, sparklines, and what it says when there is nothing."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS, FakeRun
from noisescale_dashboard.runs.view import NO_VIEW

ALL: dict[str, Any] = {**NO_VIEW, "page": 0}


def view(**changes: Any) -> dict[str, Any]:
    return {"runs-view.data": {**ALL, **changes}, "runs-cursors.data": [None], "narrow.data": False}


async def test_each_run_is_a_row_of_ready_made_words(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view())

    row = changed["runs-rows"]["data"][0]
    assert (row["noise"], row["interval"], row["batch"], row["unit"]) == ("1.49k", "1.1k – 2k", "512", "seq")
    assert row["decisionWords"] == "raise to 1,536"
    assert row["efficiency"] == "74 %"
    assert row["fit"]["at"] == pytest.approx(1 / 3)


async def test_an_unresolved_run_has_a_bound_and_no_number(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view(q="asr"))

    row = changed["runs-rows"]["data"][0]
    assert (row["noise"], row["interval"], row["efficiency"]) == ("> 344", "", "–")
    assert row["decisionWords"] == "not resolved"
    assert row["fit"]["open"] is True


async def test_a_run_that_has_diverged_is_in_a_state_of_its_own(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (replace(RUNS[4], diverged_at=101), RUNS[1])

    changed = await callbacks.post("runs-rows.data", view())

    row = changed["runs-rows"]["data"][0]
    assert (row["status"], row["decisionWords"], row["loss"]) == ("diverged", "diverged", "–")
    assert row["statusWords"].startswith("Loss and gradients are not finite since step 101.")
    assert row["noiseTitle"].endswith("until step 100")
    assert changed["runs-sentence"]["children"].startswith("One has diverged, ")


async def test_the_sentence_says_how_many_runs_are_off(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view())

    said = changed["runs-sentence"]["children"]
    assert said == (
        "Seven would gain from another batch size, one is undecided; four are running. "
        "Judged by the noise scale B_noise against the batch in use."
    )


async def test_filters_and_order_are_the_servers(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("runs-rows.data", view(q="gpt", project="demo", status="failed", sort="-loss"))

    asked = fake_api.requests[-1].query_params
    assert {name: asked[name] for name in ("q", "project", "status", "sort", "limit")} == {
        "q": "gpt", "project": "demo", "status": "failed", "sort": "-loss", "limit": "50",
    }  # fmt: skip


async def test_kappa_is_a_column_by_choice_and_no_number_before_it_is_measured(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view(cols="kappa"))

    said = [row["more"]["more kappa"] for row in changed["runs-rows"]["data"]]
    assert set(said) == {"not calibrated", "0.97, 0.58 – 1.6"}
    assert [said == "not calibrated" for said in said] == [not run.is_calibrated for run in RUNS]


async def test_the_button_before_further_filters_counts_those_that_are_set(callbacks: Callbacks) -> None:
    words = [
        (await callbacks.post("runs-rows.data", view(**filters)))["runs-more-words"]["children"]
        for filters in ({}, {"q": "gpt", "project": "demo"}, {"tag": "bf16", "batch_min": 8})
    ]

    assert words == ["More", "More", "More: 2"]


async def test_an_unknown_status_in_the_address_is_no_filter(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("runs-rows.data", view(status="<script>"))

    assert "status" not in fake_api.requests[-1].query_params


async def test_the_second_page_starts_at_the_first_ones_cursor(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = tuple(FakeRun(n, f"run-{n:03d}", 100, 64) for n in range(1, 81))

    first = await callbacks.post("runs-rows.data", view())
    values = {**view(page=1), "runs-cursors.data": first["runs-cursors"]["data"]}
    second = await callbacks.post("runs-rows.data", values)

    assert first["runs-range"]["children"] == "1 – 50 of 80"
    assert second["runs-range"]["children"] == "51 – 80 of 80"
    assert second["runs-rows"]["data"][0]["name"] == "run-051"
    assert second["runs-next"]["disabled"] is True


async def sparklines(callbacks: Callbacks, rows: list[dict[str, Any]]) -> dict[str, Any]:
    wanted = {row["id"]: row["stamp"] for row in rows}
    changed = await callbacks.post("runs-sparks-fresh.data", {"runs-sparks-wanted.data": wanted})
    return changed["runs-sparks-fresh"]["data"] if changed else {}


async def test_sparklines_come_for_the_rows_that_lack_them_with_the_stamp_of_their_row(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    rows = (await callbacks.post("runs-rows.data", view()))["runs-rows"]["data"]
    fake_api.requests.clear()

    sparks = await sparklines(callbacks, rows[2:4])

    assert {run_id: spark["stamp"] for run_id, spark in sparks.items()} == {r["id"]: r["stamp"] for r in rows[2:4]}
    assert [request.query_params["ids"] for request in fake_api.requests] == [f"{rows[2]['id']},{rows[3]['id']}"]


async def test_sparklines_that_cannot_be_read_change_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    rows = (await callbacks.post("runs-rows.data", view()))["runs-rows"]["data"]
    fake_api.failing = True

    assert await sparklines(callbacks, rows) == {}


async def test_a_sparkline_has_no_value_where_nothing_is_resolved(callbacks: Callbacks) -> None:
    rows = (await callbacks.post("runs-rows.data", view(q="asr")))["runs-rows"]["data"]

    spark = next(iter((await sparklines(callbacks, rows)).values()))["spark"]
    assert set(spark["y"]) == {None}
    assert None not in spark["low"]


async def test_without_runs_the_page_says_how_to_make_one(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = ()

    changed = await callbacks.post("runs-rows.data", view())

    said = str(changed["runs-empty"]["children"])
    assert "import noisescale" in said
    assert "make demo" in said
    assert changed["runs-card"]["hidden"] is True


async def test_filters_that_leave_nothing_are_said_to_be_the_reason(callbacks: Callbacks) -> None:
    changed = await callbacks.post("runs-rows.data", view(q="zzz"))

    assert "No run matches these filters" in str(changed["runs-empty"]["children"])


async def test_a_silent_api_is_said_and_what_is_shown_stays(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    fresh = await callbacks.post("runs-rows.data", view())
    shown = await callbacks.post("runs-rows.data", {**view(), "runs-rows.data": [{"id": 1}]})

    assert "Training is not affected" in str(fresh["runs-note"]["children"])
    assert fresh["runs-card"]["hidden"] is True
    assert "Live updates paused" in str(shown["runs-note"]["children"])
    assert shown["runs-card"]["hidden"] is False
    assert "runs-rows" not in shown


async def test_a_hostile_name_stays_a_string(callbacks: Callbacks) -> None:
    rows = (await callbacks.post("runs-rows.data", view()))["runs-rows"]["data"]

    row = next(row for row in rows if row["id"] == RUNS[8].id)
    assert row["name"] == HOSTILE
    assert row["tags"] == [HOSTILE]


async def test_the_visitors_key_goes_with_the_callback(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("runs-rows.data", view(), headers={"Authorization": "Bearer k"})

    assert fake_api.requests[-1].headers["authorization"] == "Bearer k"


@pytest.mark.thorough
async def test_the_table_may_not_run_code_from_its_data(client: httpx.AsyncClient) -> None:
    answer = await client.post(
        "/_dash-update-component",
        json=(await Callbacks.of(client)).payload("page.children", {"address.pathname": "/runs", "narrow.data": False}),
    )

    assert "dangerously_allow_code" not in answer.text
    assert "Markdown" not in answer.text
