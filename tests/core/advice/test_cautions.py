"""What a reader would not expect of limits and devices is said before they follow the advice."""

import math
from dataclasses import replace

import pytest

from advised_runs import KNOWN, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.estimators.belief import Belief


def codes(found):
    return [caution.code for caution in found.warnings]


def text_of(found, code):
    return next(caution.text for caution in found.warnings if caution.code == code)


def test_a_larger_batch_that_makes_the_run_slower_on_the_same_devices_says_so():
    timed = advised_run(spent=[stretch(128.0, 11.0)] * 25 + [stretch()] * 25)
    same = recommend(timed, Measured(KNOWN), Question(preference=0.7, num_devices=8))
    added = recommend(timed, Measured(KNOWN), Question(preference=0.7))

    assert same.decision == "increase"
    assert "takes_longer" in codes(same)
    assert "h for the rest of the plan instead of 2.78 h" in text_of(same, "takes_longer")
    assert "fixed_hardware" in text_of(same, "takes_longer")
    assert "takes_longer" not in codes(added)


@pytest.mark.parametrize("given", [{"max_micro_batches": 4}, {"restart_hours": 1.0}])
def test_a_limit_that_limits_nothing_says_what_it_needs(given):
    found = recommend(advised_run(), Measured(KNOWN), Question(preference=0.5, **given))

    assert "no_effect" in codes(found)


def test_a_deadline_that_an_end_of_the_interval_misses_says_so_and_prints_no_infinity():
    found = recommend(advised_run(), Measured(UNCALIBRATED), Question(preference=0.5, max_hours=1.9))

    assert found.limited.high is None
    assert "no batch meets the deadline if the critical batch lies at the upper end" in text_of(found, "may_be_missed")
    assert "inf" not in " ".join([found.reason, found.effect, found.headline])


def test_a_deadline_that_holds_everywhere_needs_no_caution():
    found = recommend(advised_run(), Measured(KNOWN), Question(preference=0.5, max_hours=2.0))

    assert "may_be_missed" not in codes(found)


def test_two_limits_of_which_neither_can_be_met_are_both_to_be_relaxed():
    found = recommend(advised_run(), Measured(KNOWN), Question(max_hours=0.01, max_usd=0.5))

    assert found.next_step == "Relax both: neither can be met alone."
    assert "0.01 h are too few: the end of the plan takes more than" in found.reason
    assert "Without limits the price chooses a batch of 1,024: " in found.effect


def test_an_impossible_budget_says_what_the_price_alone_takes_with_its_interval():
    found = recommend(advised_run(), Measured(KNOWN), Question(max_usd=10_000 / 1_000_000))

    row = next(one for one in found.predictions.batches if one.batch_size == 1024)
    assert found.effect.startswith("Without limits the price chooses a batch of 1,024: ")
    assert f"{row.usd.low:.3g}" in found.effect
    assert "train longer" not in found.next_step


def test_numbers_that_were_said_are_repeated_as_they_were_said():
    found = recommend(advised_run(), Measured(KNOWN), Question(max_examples=100_000, max_steps=50))

    assert "100,000 images are too few" in found.reason
    assert "50 steps are too few" in found.reason
    assert "e+" not in found.reason


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"usd_per_device_hour": None}, "usd_per_device_hour"),
        ({"num_devices": None}, "num_devices"),
        ({"num_devices": None, "usd_per_device_hour": None}, "num_devices and usd_per_device_hour"),
    ],
)
def test_a_budget_names_what_is_missing_and_nothing_else(changes, missing):
    found = recommend(advised_run(**changes), Measured(KNOWN), Question(max_usd=50))

    assert found.reason == f"max_usd: what a step costs is not known without {missing}."
    assert found.next_step.startswith(f"Pass {missing} to ")


def test_a_deadline_after_the_plan_asks_for_a_longer_plan():
    found = recommend(advised_run(steps_done=5500, planned_steps=5500), Measured(KNOWN), Question(max_hours=1))

    assert found.next_step == "Pass planned_steps beyond 5,500 to noisescale.init()."


def test_a_decayed_learning_rate_plans_nothing_foretells_nothing_and_names_the_step_before():
    warm, cold = stretch(), replace(stretch(), learning_rate=0.001)
    run = advised_run(spent=[warm] * 40 + [cold] * 10, learning_rate=0.001)

    found = recommend(run, Measured(KNOWN), Question(preference=0.5))

    assert found.decision == "insufficient_evidence"
    assert found.headline == "Not enough evidence yet"
    assert found.reason.startswith("The learning rate is below a tenth of its peak")
    assert found.schedule is None
    assert "learning rate" in found.schedule_missing
    assert found.effect is None
    assert found.next_step == "Ask for the advice of a step before the decay: to_step=399."


def test_a_decayed_learning_rate_is_decided_by_the_looks_before_it_where_they_are_known():
    warm, cold = stretch(), replace(stretch(), learning_rate=0.001)
    before = Belief.of_interval(1000.0, 900.0, 1100.0, 0.95)
    run = advised_run(spent=[warm] * 40 + [cold] * 10, learning_rate=0.001, known=KnownNoiseScale(before))

    found = recommend(run, Measured(KNOWN))

    assert (found.decision, found.recommended_batch_size) == ("increase", 1024)
    assert found.reason.startswith("By all steps so far the noise scale is 1,000 images")
    assert "learning_rate_decayed" in codes(found)
    assert found.schedule is None


def test_devices_and_what_they_buy_come_with_intervals():
    text = recommend(advised_run(), Measured(KNOWN), Question(preference=0.5)).parallelism.text

    assert text.startswith("30 devices (21 – 44) of 32 images keep busy at the best batch.")
    assert "% (" in text
    assert math.isfinite(
        recommend(advised_run(), Measured(KNOWN), Question(preference=0.5)).parallelism.greatest_speedup.high
    )
