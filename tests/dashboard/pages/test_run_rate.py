"""The card of a run that says whether its learning rate is right, and its row in the recommendation."""

import json

import pytest

from dashboard_callbacks import Callbacks
from fakes_runs import RUNS
from noisescale_dashboard.answers.series import RateVerdict
from noisescale_dashboard.run import rate as run_rate

RESOLVED = next(run for run in RUNS if run.resolved)
UNRESOLVED = next(run for run in RUNS if not run.resolved)


def asked(run_id: str) -> dict[str, object]:
    return {"run-slow-pulse.data": 1.0, "run-id.data": run_id, "narrow.data": False}


async def test_a_rate_that_is_too_low_is_drawn_and_said_in_the_card_and_in_the_recommendation(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("run-rate-figure.data", asked(RESOLVED.id))

    assert changed["run-rate-figure"]["data"]["data"]
    assert changed["run-rate-card-subtitle"]["children"].endswith("at step 1,000")
    assert "1.4\u00a0× as far as a random walk" in changed["run-rate-card-footer"]["children"]
    expected = "Learning rate: too low: the best rate is about 0.4, 4.0 × the present one (1.60 – 10.0)."
    assert changed["run-rate-sentence"]["children"] == expected
    row = json.dumps(changed["run-advice-rate"]["children"], ensure_ascii=False).replace("\u00a0", " ")
    assert "Learning rate now" in row
    assert "too low" in row
    assert "99 % sure." in row
    assert "to first order, 87 % (80 – 94 %) came." in row.replace("\u2060", "")
    seen_at_once = json.dumps(changed["run-advice-rate-now"]["children"], ensure_ascii=False).replace("\u00a0", " ")
    assert "too low" in seen_at_once
    assert "best 0.4 (0.16 – 1)" in seen_at_once


async def test_where_nothing_can_be_said_the_card_says_why_and_the_recommendation_has_no_row(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("run-rate-figure.data", asked(UNRESOLVED.id))

    assert changed["run-rate-sentence"]["children"] == "No verdict on the learning rate."
    assert "not measured" in changed["run-rate-card-footer"]["children"]
    assert changed["run-advice-rate"]["children"] == changed["run-advice-rate-now"]["children"] == []


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

    assert run_rate.at_a_glance(found) == []
    assert run_rate.row(found)


def test_a_share_of_the_promise_that_is_not_known_has_no_row() -> None:
    assert run_rate.promise_row(RateVerdict("", "", "too_high", factor=0.25)) == []
