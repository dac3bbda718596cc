"""The recommendation card of a run: what is left, how sure, how to follow it, and a plan with limits."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_advice import FLAGS, recommendation_json
from fakes_api import FakeApi
from fakes_runs import RUNS, run_json
from noisescale_dashboard.advice import Recommendation, recommendation
from noisescale_dashboard.answers import run
from noisescale_dashboard.pages import recommendation_card, recommendation_schedule

ADVISED = RUNS[0]


def view(**limits: Any) -> dict[str, Any]:
    return {"run-pref-view.data": {"pref": 0.5, **limits}, "run-id.data": ADVISED.id, "narrow.data": False}


def advised(**changes: Any) -> Recommendation:
    return recommendation({**recommendation_json(ADVISED, 0.5), **changes})


def words(shown: Any) -> str:
    said = json.dumps(shown, ensure_ascii=False, default=lambda part: part.to_plotly_json())
    return said.replace("\u00a0", " ").replace("\u2060", "")


def bottom_of(advice: Recommendation) -> str:
    return words(recommendation_card.bottom(advice, run(run_json(ADVISED))))


async def test_what_is_left_stands_at_both_batches_with_unit_and_interval(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", view())

    said = words(changed["run-advice-bottom"])
    for part in ("Steps left", "453 – 554", "Tokens left", "713M – 872M", "25.2 h", "22.7 h – 27.7 h", "$544 – $665"):
        assert part in said
    assert "Devices added with the batch" in said


def test_a_row_without_data_is_left_out_with_the_reason() -> None:
    whole = recommendation_json(ADVISED, 0.5)["predictions"]
    batches = [{**batch, "usd": None} for batch in whole["batches"]]

    said = bottom_of(advised(predictions={**whole, "batches": batches}))

    assert "Time left" in said
    assert "Cost left" not in said
    assert "the run has told no price of a device" in said


def test_without_a_plan_the_factors_between_the_batches_stand_instead() -> None:
    said = bottom_of(advised(predictions=None))

    assert "Steps, predicted" in said
    assert "left" not in said.replace("is left out", "")


def test_a_calibrated_answer_says_kappa_its_interval_and_how_many_sweeps() -> None:
    kappa = {"value": 0.97, "low": 0.74, "high": 1.26, "level": 0.95}
    known = {"state": "calibrated", "kappa": kappa, "measurements": 3, "text": "…"}

    said = bottom_of(advised(calibration=known, warnings=[]))

    assert "Calibrated here on 3 sweeps and branches: κ 0.970, 0.740 – 1.26, 95 %." in said


def test_what_was_redundant_so_far_is_said_in_examples_hours_and_usd() -> None:
    waste = recommendation_json(ADVISED, 0.5)["waste"]

    said = bottom_of(advised(waste={**waste, "hours": {"value": 5.5, "low": 4.0, "high": 7.0}}))

    assert "sequences, 5.5 h, $228; 95 %" in said


async def test_what_would_make_it_surer_is_listed_with_its_cost(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", view())

    said = words(changed["run-advice-bottom"])
    assert "A branch at 768 and 3,072: 400 steps, 0.5 h, $4." in said
    assert said.index("A branch") < said.index("A sweep of 5 runs")


async def test_the_schedule_has_a_row_for_each_stage_with_its_learning_rate(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", view())

    said = words(changed["run-advice-schedule"])
    for part in ("1,536", "1.04e-3", "3,072", "1.47e-3", "260 steps", "progress^0.40"):
        assert part in said
    assert changed["run-advice-copy"]["hidden"] is False


def test_without_a_schedule_the_card_says_why() -> None:
    advice = advised(schedule=None, schedule_missing="planned_steps is missing.")

    assert "planned_steps is missing." in words(recommendation_schedule.schedule(advice))


def test_what_else_to_set_says_its_rule_its_reach_and_where_there_is_none() -> None:
    said = words(recommendation_schedule.rescaling(advised().rescaling))

    assert "6.0e-4" in said
    assert "outside of that" in said
    assert "Not verified for this optimizer" in said


@pytest.mark.parametrize("trainer", list(recommendation_schedule.TRAINERS))
async def test_a_trainers_text_is_the_apis_for_the_same_question(
    callbacks: Callbacks, fake_api: FakeApi, trainer: str
) -> None:
    body = callbacks.payload("run-flags.data", {**view(max_hours=12.0), f"run-copy-{trainer}.n_clicks": 1})
    body["changedPropIds"] = [f"run-copy-{trainer}.n_clicks"]

    answer = await callbacks.client.post("/_dash-update-component", json=body)

    assert answer.json()["response"]["run-flags"]["data"]["text"] == FLAGS
    assert dict(fake_api.requests[-1].query_params) == {"max_hours": "12.0", "format": trainer}


async def test_limits_reach_the_api_and_a_price_takes_the_place_of_the_preference(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    asked = {"pref": 0.9, "examples_per_step": 500, "num_devices": 8}

    changed = await callbacks.post("run-bullet-figure.data", {**view(), "run-pref-view.data": asked})

    query = next(r for r in fake_api.requests if r.url.path.endswith("/recommendation")).query_params
    assert dict(query) == {"examples_per_step": "500", "num_devices": "8"}
    assert changed["run-pref-word"]["children"] == "by the price below"
    said = words(changed["run-advice-top"])
    assert "You would spend 500 examples to save a step." in said
    assert "The memory of 8 devices holds 768 at most." in said
    assert "Raise the batch to 1,536, by your memory limit" in said


async def test_a_refused_limit_is_said_beside_its_field_and_what_is_shown_stays(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", view(max_hours=-1))

    assert changed["run-limit-max_hours"]["error"] == "Input should be greater than 0"
    assert changed["run-limit-max_usd"]["error"] is None
    assert "run-advice-bottom" not in changed
    assert "see the limits" in changed["run-advice-subtitle"]["children"]


def test_what_the_reason_says_of_a_limit_is_not_said_again() -> None:
    limited = {"batch_size": None, "binding": ["seconds"], "text": "1 h is too little.", "possible": None}
    advice = replace(advised(limited=limited, reason="1 h is too little."), recommended_batch_size=None)

    assert words(recommendation_card.top(advice)).count("1 h is too little.") == 1


def test_limits_that_exclude_each_other_say_what_is_possible() -> None:
    limited = {"batch_size": None, "binding": ["seconds", "usd"], "text": "18 h need ≥ 614, $350 allow ≤ 287."}
    advice = advised(limited={**limited, "possible": "Cheapest within 18 h: $414."})

    said = words(recommendation_card.top(replace(advice, recommended_batch_size=None)))

    assert "18 h need ≥ 614, $350 allow ≤ 287. Cheapest within 18 h: $414." in said
