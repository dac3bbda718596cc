"""The recommendation card of a run: what is left, how sure, how to follow it, and a plan with limits."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard_callbacks import Callbacks
from fakes_advice import FLAGS, recommendation_json
from fakes_api import FakeApi
from fakes_runs import RUNS, run_json
from noisescale_dashboard.answers.advice import Recommendation, Waste, recommendation
from noisescale_dashboard.answers.common import UNKNOWN, Interval, run
from noisescale_dashboard.run import head as run_overview
from noisescale_dashboard.run import laws as run_laws
from noisescale_dashboard.run import recommendation_card, recommendation_schedule

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
    assert "no device price was given for this run" in said


def test_without_a_plan_the_factors_between_the_batches_stand_instead() -> None:
    said = bottom_of(advised(predictions=None))

    assert "Steps, predicted" in said
    assert "left" not in said.replace("is left out", "")


def test_a_calibrated_answer_says_kappa_its_interval_and_how_many_sweeps() -> None:
    kappa = {"value": 0.97, "low": 0.74, "high": 1.26, "level": 0.95}
    known = {"state": "calibrated", "kappa": kappa, "measurements": 3, "text": "…"}

    said = bottom_of(advised(calibration=known, warnings=[]))

    assert "Calibrated here on 3 measurements: κ 0.970, 0.740 – 1.26, 95 %." in said


def test_where_kappa_is_not_one_the_card_says_by_what_its_rows_and_its_curve_go() -> None:
    """At κ 7.6 an example efficiency of 10 % stands beside 1.9 times the fewest examples."""
    kappa = {"value": 7.6, "low": 2.0, "high": 28.0, "level": 0.95}
    known = {"state": "calibrated", "kappa": kappa, "measurements": 3, "text": "…"}
    of_itself = {**known, "kappa": {**kappa, "value": 1.0}}

    tied, plain = advised(calibration=known, warnings=[]), advised(calibration=of_itself, warnings=[])

    by_what = "Efficiencies go by the noise scale alone. Steps and examples go by the critical batch, κ times as large"
    assert f"{by_what}: κ 7.60." in bottom_of(tied)
    assert by_what not in bottom_of(plain)
    assert str(run_laws.position_footer(tied)).endswith("critical batch: 7.60 × the noise scale (κ).")
    assert str(run_laws.position_footer(plain)).endswith("where this run may be (95 %).")


def test_kappa_of_other_tasks_of_the_family_is_not_said_to_be_of_here() -> None:
    kappa = {"value": 7.58, "low": 0.35, "high": 164.0, "level": 0.95}
    text = "Calibrated on 1 branch of other tasks of this family: κ 7.6, ×/÷ 4.8."
    known = {"state": "calibrated", "kappa": kappa, "measurements": 1, "text": text}

    said = bottom_of(advised(calibration=known, warnings=[]))

    assert "Calibrated on 1 branch of other tasks of this family: κ 7.58, 0.350 – 164, 95 %." in said


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
    assert changed["run-advice-details"]["open"] is True
    said = words(changed["run-advice-top"]) + words(changed["run-advice-why"])
    assert "You would spend 500 examples to save a step." in said
    assert "The memory of 8 devices holds 768 at most." in said
    assert said.count("Raise the batch to 1,536, your memory limit") == said.count("your memory limit") == 1


def test_what_was_redundant_is_an_interval_and_its_tooltip_says_of_how_much() -> None:
    examples = Interval(2650.0, 2100.0, 3200.0)
    waste = Waste(examples, Interval(0.26, 0.21, 0.31), Interval(228.0, 182.0, 274.0))

    priced = run_overview.redundant(waste, run(run_json(RUNS[0])))
    unpriced = run_overview.redundant(replace(waste, usd=UNKNOWN), run(run_json(RUNS[0])))

    assert priced == {
        "words": "26 % of the data so far was redundant (≈ $228)",
        "title": "Predicted: $228 of $877, 26 % (95 %: 21 – 31 %), which smaller batches would not have needed.",
    }
    assert unpriced is not None
    assert unpriced["words"] == "26 % of the data so far was redundant (≈ 2.65k seq)"


def test_nothing_is_said_to_be_redundant_while_that_is_not_known() -> None:
    assert run_overview.redundant(Waste(), run(run_json(RUNS[0]))) is None


async def test_the_planner_is_opened_with_the_price_and_the_limits_of_the_card(callbacks: Callbacks) -> None:
    said = {"max_hours": 18, "num_devices": 8, "fixed_hardware": 1, "spot_price_share": 0.3, "restart_hours": 0.1}

    limited = await callbacks.post("run-bullet-figure.data", view(**said))
    preferred = await callbacks.post("run-bullet-figure.data", view(pref=0.8))

    asked = parse_qs(urlsplit(limited["run-planner"]["href"]).query)
    assert {name: value for name, (value,) in asked.items()} == {
        "run": ADVISED.id, "deadline_h": "18", "devices": "8", "stay": "1", "fixed": "1", "spot": "1",
        "spot_share": "0.3", "restart_h": "0.1", "stops": "0", "ckpt_h": "0",
    }  # fmt: skip
    assert preferred["run-planner"]["href"] == f"/planner?run={ADVISED.id}&pref=0.8"


async def test_limits_that_do_not_bind_are_asked_of_the_trade_off_and_drawn_grey(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    limited = await callbacks.post("run-bullet-figure.data", view(max_hours=18, fixed_hardware=1))
    asked = next(r for r in fake_api.requests if r.url.path.endswith("/tradeoff")).query_params
    fake_api.requests.clear()
    await callbacks.post("run-bullet-figure.data", view(spot_price_share=0.3))

    assert dict(asked) == {"run_id": ADVISED.id, "max_hours": "18", "fixed_hardware": "1", "batch_size": "1"}
    names = [shape.get("name") for shape in limited["run-bullet-figure"]["data"]["layout"]["shapes"]]
    assert "seconds" in names
    assert not [r for r in fake_api.requests if r.url.path.endswith("/tradeoff")]


async def test_a_refused_limit_is_said_beside_its_field_and_what_is_shown_stays(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-bullet-figure.data", view(max_hours=-1))

    assert changed["run-limit-max_hours"]["error"] == "Input should be greater than 0"
    assert changed["run-limit-max_usd"]["error"] is None
    assert "run-advice-bottom" not in changed
    assert "see the limits" in changed["run-advice-subtitle"]["children"]


def test_what_the_reason_says_of_a_limit_is_not_said_again() -> None:
    limited = {"batch_size": None, "binding": ["seconds"], "text": "1 h is too little.", "possible": None}
    advice = replace(
        advised(limited=limited, reason="1 h is too little.", short_reason="1 h is too little."),
        recommended_batch_size=None,
    )

    assert words(recommendation_card.top(advice)).count("1 h is too little.") == 1


def test_limits_that_exclude_each_other_say_what_is_possible() -> None:
    limited = {"batch_size": None, "binding": ["seconds", "usd"], "text": "18 h need ≥ 614, $350 allow ≤ 287."}
    advice = advised(limited={**limited, "possible": "Cheapest within 18 h: $414."})

    said = words(recommendation_card.top(replace(advice, recommended_batch_size=None)))

    assert said.index("18 h need ≥ 614, $350 allow ≤ 287.") < said.index("Cheapest within 18 h: $414.")
