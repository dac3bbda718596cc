"""The card of a run that says whether its learning rate is right, and its row in the recommendation."""

import json
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_advice import recommendation_json
from fakes_api import FakeApi
from fakes_runs import RUNS, run_json
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.answers.series import RateVerdict
from noisescale_dashboard.run import rate as run_rate
from noisescale_dashboard.run import recommendation_card

RESOLVED = next(one for one in RUNS if one.resolved)
UNRESOLVED = next(one for one in RUNS if not one.resolved)
OFF = RateVerdict("", "", "too_high", factor=0.25, factor_low=0.1, factor_high=0.6, learning_rate=0.4)
OF_RECOMMENDATION = {"run-pref-view.data": {"pref": 0.5}, "run-id.data": RESOLVED.id, "narrow.data": False}


def asked(run_id: str) -> dict[str, object]:
    return {"run-slow-pulse.data": 1.0, "run-id.data": run_id, "narrow.data": False}


async def test_a_rate_that_is_too_low_is_drawn_and_said_in_the_card_and_in_the_recommendation(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("run-rate-figure.data", asked(RESOLVED.id))

    assert changed["run-rate-figure"]["data"]["data"]
    assert changed["run-rate-card-subtitle"]["children"].endswith("at step 1,000")
    assert "1.4\u00a0× as far as a random walk" in changed["run-rate-card-footer"]["children"]
    expected = "Learning rate: too low: the best rate is about 2.4e-3, 4.0 × the present one (1.60 – 10.0)."
    assert changed["run-rate-sentence"]["children"] == expected
    row = json.dumps(changed["run-advice-rate"]["children"], ensure_ascii=False).replace("\u00a0", " ")
    assert "Learning rate now" in row
    assert "too low" in row
    assert "99 % sure." in row
    assert "to first order, 87 % (80 – 94 %) came." in row.replace("\u2060", "")


def rows_of(shown: Any) -> list[str]:
    """The text of each row of a table."""
    part = shown.to_plotly_json() if hasattr(shown, "to_plotly_json") else shown
    if isinstance(part, list | tuple):
        return [row for one in part for row in rows_of(one)]
    if not isinstance(part, dict):
        return []
    inside = part["props"].get("children")
    return [text_of(inside)] if part["type"] == "Tr" else rows_of(inside)


def text_of(shown: Any) -> str:
    part = shown.to_plotly_json() if hasattr(shown, "to_plotly_json") else shown
    if isinstance(part, list | tuple):
        return "".join(text_of(one) + " " * is_cell(one) for one in part).strip()
    return text_of(part["props"].get("children") or "") if isinstance(part, dict) else str(part)


def is_cell(shown: Any) -> bool:
    return (shown.get("type") if isinstance(shown, dict) else getattr(shown, "_type", None)) in ("Th", "Td")


def advised_rows(found: RateVerdict, **changes: Any) -> list[str]:
    """What the recommendation says in rows at once."""
    advice = recommendation({**recommendation_json(RESOLVED, 0.5), **changes})
    return rows_of(recommendation_card.rows(advice, run(run_json(RESOLVED)), found))


async def test_a_rate_that_is_off_stands_with_the_best_one_beside_the_rate_of_another_batch(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("run-advice-rows.children", OF_RECOMMENDATION)

    assert rows_of(changed["run-advice-rows"]["children"])[-2:] == [
        "Learning rate, by the batch 6.0e-4 → 1.04e-3",
        "Now too low; best 2.4e-3 (9.6e-4 – 6.0e-3)",
    ]


@pytest.mark.parametrize("decision", ["keep", "keep_for_now", "insufficient_evidence"])
def test_where_no_other_rate_is_advised_one_that_is_off_stands_with_the_present_one(decision: str) -> None:
    assert advised_rows(OFF, decision=decision) == ["Learning rate 0.4", "Now too high; best 0.1 (0.04 – 0.24)"]


def test_where_the_batchs_rule_has_no_answer_so_does_it_in_a_change() -> None:
    rows = advised_rows(OFF, learning_rate=None)

    assert rows[-2:] == ["Learning rate 0.4", "Now too high; best 0.1 (0.04 – 0.24)"]
    assert len(rows) == 4


def test_why_no_time_is_known_gives_way_to_it() -> None:
    whole = recommendation_json(RESOLVED, 0.5)["predictions"]
    batches = [{**one, "hours": one["hours"] if one["is_present"] else None} for one in whole["batches"]]
    advice = recommendation({**recommendation_json(RESOLVED, 0.5), "predictions": {**whole, "batches": batches}})
    of_run = run(run_json(RESOLVED))

    assert len(recommendation_card.rows(advice, of_run, RateVerdict())) == 2
    assert len(recommendation_card.rows(advice, of_run, OFF)) == 1


async def test_a_recommendation_stands_without_a_verdict_that_does_not_come(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    fake_api.failing_ends = ("/learning-rate",)

    changed = await callbacks.post("run-advice-rows.children", OF_RECOMMENDATION)

    assert rows_of(changed["run-advice-rows"]["children"])[-1] == "Learning rate, by the batch 6.0e-4 → 1.04e-3"


async def test_where_nothing_can_be_said_the_card_says_why_and_the_recommendation_has_no_row(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("run-rate-figure.data", asked(UNRESOLVED.id))

    assert changed["run-rate-sentence"]["children"] == "No verdict on the learning rate."
    assert "not measured" in changed["run-rate-card-footer"]["children"]
    assert changed["run-advice-rate"]["children"] == []


async def test_a_run_that_is_not_there_is_said_in_the_card(callbacks: Callbacks) -> None:
    changed = await callbacks.post("run-rate-figure.data", asked("00000000-0000-4000-8000-000000009999"))

    assert changed["run-rate-card-subtitle"]["children"].startswith("not loaded: ")


def test_a_verdict_without_a_known_rate_says_the_factor_alone() -> None:
    found = RateVerdict("Learning rate: too high", "", "too_high", factor=0.25, factor_low=0.1, factor_high=0.6)

    assert run_rate.sentence(found) == (
        "Learning rate: too high: the best rate is 0.25 × the present one (0.100 – 0.600)."
    )


@pytest.mark.parametrize("verdict", ["about_right", "perhaps_too_low", "unclear"])
def test_a_rate_that_is_not_surely_off_is_not_said_beside_the_answer(verdict: str) -> None:
    found = RateVerdict("", "", verdict, factor=1.2, factor_low=0.8, factor_high=1.9, learning_rate=0.1)

    assert run_rate.at_a_glance(found) is None
    assert run_rate.row(found)


def test_a_share_of_the_promise_that_is_not_known_has_no_row() -> None:
    assert run_rate.promise_row(RateVerdict("", "", "too_high", factor=0.25)) == []
