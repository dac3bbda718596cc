"""The page of a run: answer, facts, figures, recommendation, layers, records; and when the run is not there."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS, run_json, series_json
from noisescale_dashboard.answers import common as answers
from noisescale_dashboard.answers import series as series_answers
from noisescale_dashboard.run import page as run
from noisescale_dashboard.run import reading as run_reading
from noisescale_dashboard.words.number_format import significant

WHOLE: dict[str, Any] = {
    "x": "step",
    "w": "auto",
    "from": None,
    "to": None,
    "layer": None,
    "kind": "simple",
    "pref": 0.5,
    "show": "terms",
    "linked": True,
    "envelope": True,
    "outside": False,
}


def series_view(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "run-series-view.data": {**WHOLE, **changes},
        "run-id.data": RUNS[number - 1].id,
        "narrow.data": False,
    }


async def opened(callbacks: Callbacks, values: dict[str, Any]) -> dict[str, Any]:
    """What the callbacks of the figures over training change, all figures together."""
    is_look = "run-live.data" in values
    asked = {**values, "run-beside-asked.data": {"view": values["run-series-view.data"]}}
    stores = ["run-figures.data", "run-beside-figures.data"]
    if not is_look:
        stores.append("run-records.children")
        asked["run-records-asked.data"] = {"at": 1.0}
    main, beside, *records = await asyncio.gather(*(callbacks.post(store, asked) for store in stores))
    changed = {**main, **beside, **(records[0] if records else {})}
    if "run-figures" in main and "run-beside-figures" in beside:
        changed["run-figures"] = {"data": {**main["run-figures"]["data"], **beside["run-beside-figures"]["data"]}}
    return changed


def advice_view(number: int = 1, preference: float = 0.5) -> dict[str, Any]:
    return {"run-pref-view.data": {"pref": preference}, "run-id.data": RUNS[number - 1].id}


def joined(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u2060", "")


async def test_the_card_opens_with_the_answer_one_reason_and_how_sure_it_is(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", advice_view())

    said = joined(json.dumps(changed["run-advice-top"], ensure_ascii=False))
    assert said.count("Raise the batch to 1,536") == said.count("512 looks about 3 × too small.") == 1
    assert "likely · 91 %" in str(changed["run-advice-chip"])
    rows = joined(json.dumps(changed["run-advice-rows"], ensure_ascii=False))
    assert [word in rows for word in ("Time left", "Cost left", "Learning rate")] == [True] * 3


async def test_without_a_change_to_make_the_answer_says_why_and_shows_no_batch(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", advice_view(6))

    said = joined(str(changed["run-advice-top"]["children"]))
    assert "The noise scale is above 344 utterances; no upper bound can be given." in said
    assert (changed["run-advice-rows"]["children"], changed["run-advice-copy"]["hidden"]) == ([], True)


async def test_a_run_that_has_diverged_says_so_before_its_numbers(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (replace(RUNS[0], diverged_at=101), *RUNS[1:])

    changed = await opened(callbacks, series_view())

    head, facts = str(changed["run-head"]["children"]), str(changed["run-facts"]["children"])
    assert "Loss and gradients are not finite since step 101. The noise scale is until step 100." in head
    for said in ("until step 100 · ", "not finite since step 101", "diverged at step 101"):
        assert said in facts


async def test_the_head_says_what_one_example_is(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    assert "sequence = 1,024 tokens" in str(changed["run-head"]["children"])


async def test_logged_metrics_are_listed_with_their_latest_value_and_step(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    records = json.dumps(changed["run-records"]["children"], ensure_ascii=False)
    for said in ("eval_loss", "accuracy", "3.062", "176,525", "0.758 – 0.942"):
        assert said in records
    assert changed["run-loss-card-subtitle"]["children"].endswith("dots: logged")
    assert "eval_loss 3.06 at step 176,525." in changed["run-loss-sentence"]["children"]


async def test_the_loss_and_the_key_figures_of_one_layer_are_those_of_the_whole_model(callbacks: Callbacks) -> None:
    whole, layer = [await opened(callbacks, series_view(layer=layer)) for layer in (None, "blocks.06")]

    assert layer["run-figures"]["data"]["loss"]["data"] == whole["run-figures"]["data"]["loss"]["data"]
    assert layer["run-facts"] == whole["run-facts"]


async def test_each_key_figure_has_its_unit_and_interval(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    facts = json.dumps(changed["run-facts"]["children"], ensure_ascii=False)
    for said in ("1,490", "seq", "1,130 – 1,950, 95 %", "since step 40.5k", "74 %", "184.2k", "/ 251k", "left"):
        assert said in facts


async def test_an_unresolved_run_shows_bounds_and_reasons(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view(6))

    facts = json.dumps(changed["run-facts"]["children"], ensure_ascii=False)
    assert "> 344" in facts
    assert "no upper bound yet" in facts
    assert "Noise scale not resolved, above" in changed["run-noise-sentence"]["children"]


async def test_the_name_of_the_quantity_stands_in_the_first_title(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    assert changed["run-noise-card-title"]["children"] == "Noise scale B_noise over training"
    assert changed["run-noise-card-subtitle"]["children"].startswith("Sequences · log · band: 95 % interval")
    assert [choice["label"] for choice in changed["run-x"]["data"]] == ["Step", "Tokens", "Time", "Loss"]


async def test_the_range_the_window_and_the_layer_are_asked_of_the_api(callbacks: Callbacks, fake_api: FakeApi) -> None:
    view = series_view(w="5", layer="blocks.06", **{"from": 1000, "to": 9000})

    changed = await opened(callbacks, view)

    asked = [dict(r.query_params) for r in fake_api.requests if r.url.path.endswith("/noise-scale")]
    of_layer = {"from": "1000", "to": "9000", "window": "9210", "group": "blocks.06"}
    for points in ("240", "160"):
        assert {"points": points, **of_layer} in asked
    assert "Zoomed to steps 1k – 9k" in str(changed["run-noise-card-footer"]["children"])
    assert changed["run-noise-card-title"]["children"] == "Noise scale B_noise of blocks.06"


async def test_a_zoom_into_what_is_shown_leaves_alone_what_is_said_of_the_run(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    shown = {"run-live.data": {"running": True}, "run-loss-sentence.children": "The loss falls."}
    zoom = {**series_view(**{"from": 1000, "to": 9000}), **shown}

    changed = await opened(callbacks, zoom)

    assert {"run-figures", "run-noise-sentence"} <= set(changed)
    assert not {"run-head", "run-facts", "run-said", "run-records", "run-notices", "run-x"} & set(changed)
    assert not any(path.endswith("/streams") for path in fake_api.paths())


async def test_another_kind_has_its_title_terms_and_caveat_and_leaves_the_rest_of_the_page(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    simple = await opened(callbacks, series_view())

    adam = await opened(callbacks, series_view(kind="adam"))

    asked = [r.query_params for r in fake_api.requests if r.url.path.endswith("/noise-scale")]
    assert [one.get("kind") for one in asked if one["points"] == "240"] == [None, None, "adam"]
    assert adam["run-noise-card-title"]["children"] == "Adam-preconditioned noise scale over training"
    assert "Kind adam" in str(adam["run-noise-card-footer"]["children"])
    assert "rests on kind simple alone" in str(adam["run-noise-card-footer"]["children"])
    assert "Kind" not in str(simple["run-noise-card-footer"]["children"])
    for same in ("run-facts", "run-records", "run-loss-sentence"):
        assert adam[same] == simple[same]
    figures = [changed["run-figures"]["data"] for changed in (simple, adam)]
    assert figures[0]["loss"]["data"] == figures[1]["loss"]["data"]
    assert figures[0]["noise"]["data"] != figures[1]["noise"]["data"]


async def test_the_terms_of_a_kind_go_by_their_names(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view(kind="hessian"))

    assert changed["run-terms-card-subtitle"]["children"] == ["tr(H Σ) and GᵀH G, log · band: 95 %"]
    labels = [a["text"] for a in changed["run-figures"]["data"]["terms"]["layout"]["annotations"]]
    assert any("GᵀH G" in label for label in labels)


@pytest.mark.parametrize(("number", "kind", "hidden"), [(1, "simple", False), (2, "simple", True), (2, "sign", False)])
async def test_kinds_are_offered_where_there_are_several(
    callbacks: Callbacks, number: int, kind: str, hidden: bool
) -> None:
    """And where the address names one of which there are no rows yet."""
    changed = await opened(callbacks, series_view(number, kind=kind))

    assert changed["run-kind-box"]["hidden"] is hidden
    offered = [choice["value"] for choice in changed["run-kind"]["data"]]
    assert offered == {1: ["simple", "adam", "hessian"], 2: list(dict.fromkeys(["simple", kind]))}[number]


async def test_the_page_says_where_the_small_batches_come_from(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    measured = "4 ranks × 2 micro-batches, every 10th step"
    assert f"measured from {measured}" in str(changed["run-head"]["children"])
    assert measured in str(changed["run-records"]["children"])
    assert "left out: pos_embedding (a plain parameter)" in str(changed["run-records"]["children"])


async def test_a_notice_is_said_once(callbacks: Callbacks) -> None:
    """At the top of the page, and then not again among the cautions of the recommendation."""
    page = await opened(callbacks, series_view(3))
    card = await callbacks.post("run-bullet-figure.data", advice_view(3))

    assert "Ranks see different data" in str(page["run-notices"]["children"])
    assert "Not calibrated" in str(card["run-advice-bottom"]["children"])
    assert "Ranks see different data" not in str(card["run-advice-bottom"]["children"])


async def test_a_refresh_keeps_the_revision_so_that_the_readers_zoom_stays(callbacks: Callbacks) -> None:
    first, second = [await opened(callbacks, series_view()) for _ in range(2)]

    revisions = [c["run-figures"]["data"]["noise"]["layout"]["uirevision"] for c in (first, second)]
    assert revisions[0] == revisions[1]


@pytest.mark.parametrize(("number", "is_running"), [(1, True), (3, True), (5, False)])
async def test_only_a_run_that_may_have_news_is_asked_again(
    callbacks: Callbacks, number: int, is_running: bool
) -> None:
    changed = await opened(callbacks, series_view(number))

    assert changed["run-live"]["data"]["running"] is is_running


async def test_a_run_that_is_not_there_is_said_clearly(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, {**series_view(), "run-id.data": "nobody"})

    assert "No such run" in str(changed["run-missing"]["children"])
    assert changed["run-body"]["className"] == "hidden"
    assert changed["run-live"]["data"]["running"] is False


async def test_when_the_api_fails_what_is_shown_stays(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    fresh = await opened(callbacks, series_view())
    live = {"running": True, "at": "13:01:40 UTC"}
    shown = await opened(callbacks, {**series_view(), "run-live.data": live})

    assert "Training is not affected" in str(fresh["run-missing"]["children"])
    assert "Live updates paused. Shown: data until 13:01:40 UTC." in str(shown["run-note"]["children"])
    assert "run-figures" not in shown


async def test_a_view_the_api_refuses_is_not_taken_for_a_missing_run(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.refused_groups = ("gone",)

    changed = await opened(callbacks, series_view(layer="gone"))

    assert "no group gone" in str(changed["run-missing"]["children"])
    assert "No such run" not in str(changed["run-missing"]["children"])


async def test_lost_records_are_said_with_numbers(callbacks: Callbacks) -> None:
    lost = await opened(callbacks, series_view(3))
    complete = await opened(callbacks, series_view(1))

    assert "12 of 56,300 records did not arrive" in str(lost["run-records"]["children"])
    assert "records 151 – 162: memory full" in str(lost["run-records"]["children"])
    assert "Complete: 184,200 records stored, none lost." in str(complete["run-records"]["children"])


async def test_the_recommendation_says_what_it_buys_and_how_sure_it_is(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", advice_view())

    said = joined(json.dumps(changed, ensure_ascii=False))
    for part in (
        "Raise the batch to 1,536", "50 % fewer steps", "interval 219 – 10,800, 95 %", "by statistics alone",
        "Best batch before rounding 1,490", "now 512", "at 1,536", "1.04e-3", "Not calibrated", "resolved (z 5.1)",
        "balanced",
    ):  # fmt: skip
        assert part in said


async def test_the_preference_reaches_the_api(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("run-bullet-figure.data", advice_view(preference=0.9))

    asked = next(r for r in fake_api.requests if r.url.path.endswith("/recommendation"))
    assert asked.query_params["preference"] == "0.9"
    assert changed["run-pref-word"]["children"] == "90 % towards fewer steps"


async def test_without_evidence_there_is_no_batch_but_the_next_step(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", advice_view(6))

    assert "Not enough evidence yet" in str(changed["run-advice-top"]["children"])
    assert "About 9k more steps" in str(changed["run-advice-top"]["children"])
    assert changed["run-advice-bullet"]["hidden"] is True
    assert "run-bullet-figure" not in changed


@pytest.mark.parametrize("kind", ["map", "rank"])
async def test_layers_have_a_figure_a_choice_and_a_sentence(callbacks: Callbacks, kind: str) -> None:
    values = {
        "run-layers-asked.data": {"from": None, "to": None, "layers": kind, "term": "noise"},
        "run-id.data": RUNS[0].id,
    }

    changed = await callbacks.post("run-layer-figure.data", values)

    assert changed["run-layer"]["data"][0] == "embedding"
    assert "Largest noise scale in lm_head" in changed["run-layers-sentence"]["children"]
    assert changed["run-layer-figure"]["data"]["data"]


async def test_the_law_of_the_noise_scale_over_the_loss_is_said(callbacks: Callbacks) -> None:
    values = {"run-slow-pulse.data": 1.0, "run-id.data": RUNS[0].id, "narrow.data": False}

    changed = await callbacks.post("run-law-figures.data", values)

    assert set(changed["run-law-figures"]["data"]) == {"against"}
    expected = "A power law fits best. 3 windows at a decayed learning rate are left out."
    assert changed["run-against-card-footer"]["children"] == expected
    assert changed["run-against-sentence"]["children"].endswith("It goes as the loss to the power −6.1.")


async def test_the_place_on_the_trade_off_curve_is_said_or_why_there_is_none(callbacks: Callbacks) -> None:
    known, unknown = [await callbacks.post("run-bullet-figure.data", advice_view(number)) for number in (1, 6)]

    assert "times the fewest steps" in known["run-tradeoff-sentence"]["children"]
    assert "no place on the curve yet" in unknown["run-tradeoff-card-footer"]["children"]


async def test_hostile_words_of_a_run_are_text_everywhere(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view(9))

    # the columns of the export are no markup: the browser writes them as text
    drawn = [
        {**figure, "layout": {**figure["layout"], "meta": None}} for figure in changed["run-figures"]["data"].values()
    ]
    for shown in (drawn, changed["run-noise-sentence"]):
        assert "<img" not in json.dumps(shown)
    shown = changed["run-crumb"]["children"]
    assert shown == HOSTILE
    assert "Markdown" not in json.dumps(changed)


async def test_figures_that_are_not_linked_show_the_whole_run_beside_the_zoomed_one(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    zoom = {"from": 30_000, "to": 60_000}

    linked = await opened(callbacks, series_view(**zoom))
    apart = await opened(callbacks, series_view(**zoom, linked=False))

    def last_x(changed: dict[str, Any], name: str) -> float:
        return float(changed["run-figures"]["data"][name]["layout"]["xaxis"]["range"][1])

    assert [last_x(linked, name) < 61_000 for name in ("noise", "terms", "loss")] == [True, True, True]
    assert [last_x(apart, name) < 61_000 for name in ("noise", "terms", "loss")] == [True, False, False]
    assert "Zoomed to steps 30k – 60k" in str(apart["run-noise-card-footer"])


async def test_a_run_without_news_is_not_drawn_again(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.said[RUNS[0].id] = {"updated_at": "2026-11-20T13:00:00Z"}
    values = series_view()
    live = (await callbacks.post("run-figures.data", values))["run-live"]["data"]
    fake_api.requests.clear()

    async def pulsed(**changes: Any) -> dict[str, Any]:
        call = callbacks.payload("run-figures.data", {**values, "run-live.data": {**live, **changes}})
        answer = await callbacks.client.post(
            "/_dash-update-component", json=call | {"changedPropIds": ["run-pulse.data"]}
        )
        changed: dict[str, Any] = answer.json()["response"]
        return changed

    quiet = await pulsed()
    assert set(quiet) == {"run-live", "run-note"}
    assert quiet["run-live"]["data"]["stamp"] == live["stamp"]
    assert fake_api.paths() == [f"/api/v1/runs/{RUNS[0].id}"]
    assert "run-figures" in await pulsed(stamp="2026-01-01T00:00:00Z"), "something has come"
    assert "run-figures" in await pulsed(words="no data"), "it runs again"
    fake_api.failing = True
    failed = await pulsed(stamp="2026-01-01T00:00:00Z")
    assert set(failed) == {"run-live", "run-note"}
    assert failed["run-live"]["data"]["stamp"] is None, "the next answer draws everything"


async def test_branches_stand_among_the_events_of_their_run_alone(callbacks: Callbacks) -> None:
    own, other = [await opened(callbacks, series_view(number)) for number in (1, 2)]

    def words(changed: dict[str, Any]) -> list[str]:
        return [note["text"] for note in changed["run-figures"]["data"]["noise"]["layout"]["annotations"]]

    assert "branch" in words(own)
    assert "branch" not in words(other)


async def test_the_card_of_the_terms_shows_efficiency_and_waste_too(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view(show="efficiency", layer="blocks.06"))

    assert changed["run-terms-card-title"]["children"] == "Efficiency and waste"
    assert "Example efficiency" in changed["run-terms-sentence"]["children"]
    assert "redundant examples" in [t["name"] for t in changed["run-figures"]["data"]["terms"]["data"]]


@pytest.mark.parametrize(
    ("term", "title", "unit"),
    [("noise", "Noise scale by layer", "sequences"), ("trace_cov", "tr Σ by layer", "squared gradient")],
)
async def test_layers_show_the_noise_scale_or_one_of_its_terms(
    callbacks: Callbacks, term: str, title: str, unit: str
) -> None:
    values = {
        "run-layers-asked.data": {"from": None, "to": None, "layers": "map", "term": term},
        "run-live.data": (await opened(callbacks, series_view()))["run-live"]["data"],
        "run-id.data": RUNS[0].id,
    }

    changed = await callbacks.post("run-layer-figure.data", values)

    assert changed["run-layers-card-title"]["children"] == title
    assert unit in changed["run-layers-card-subtitle"]["children"]
    # on a dark ground the larger ones are the lighter ones
    assert "network order · faint to strong: " in changed["run-layers-card-subtitle"]["children"]


@pytest.mark.parametrize(("hours", "seconds"), [(0.0, 0.0), (0.5, 6.0), (2.0, 24.0), (50.0, 60.0)])
def test_a_run_is_asked_for_as_often_as_its_charts_move(hours: float, seconds: float) -> None:
    begun = datetime(2026, 11, 22, tzinfo=UTC)
    own = answers.run(run_json(RUNS[0]))
    aged = replace(own, created_at=begun.isoformat(), updated_at=(begun + timedelta(hours=hours)).isoformat())

    assert run.live_state(aged)["every"] == pytest.approx(seconds)


async def test_the_loss_line_ends_in_the_loss_of_the_key_figures(callbacks: Callbacks) -> None:
    changed = await opened(callbacks, series_view())

    loss = answers.run(run_json(RUNS[0])).loss
    drawn = next(one for one in changed["run-figures"]["data"]["loss"]["data"] if one["name"] == "loss")
    in_facts = next(fact for fact in changed["run-facts"]["children"] if "'Loss'" in str(fact))
    assert significant(drawn["y"][-1], 4) == significant(loss, 4)
    assert significant(loss, 4) in str(in_facts)


def test_a_range_that_ends_earlier_keeps_its_own_last_loss() -> None:
    run = answers.run(run_json(RUNS[0]))
    series = series_answers.noise_scale_series(series_json(RUNS[0], last=100_000))

    assert run_reading.ending_in_latest_loss(series, run) == series
