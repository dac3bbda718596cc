"""Hand numbers: S = 5,000 at B = 256 and B_crit b, about 1,000, so S_min = 5,000 / (1 + b / 256), E_min = b S_min."""

import math
from dataclasses import replace

import pytest

from advised_runs import KNOWN, STEPS_LEFT, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend

HOURS_PER_STEP = 2 / 3600
USD_PER_EXAMPLE = 8 * 3.0 * HOURS_PER_STEP / 256


def advice(run=None, wish=None, kappa=KNOWN, **given):
    return recommend(run or advised_run(), Measured(kappa), replace(wish or Question(), **given))


def least(found):
    """S_min and E_min by the answer's own critical batch, which is the noise scale within a few per cent."""
    critical = found.critical_batch.value
    assert critical == pytest.approx(1000, rel=0.03)
    steps = STEPS_LEFT / (1 + critical / 256)
    return steps, critical * steps


def test_without_limits_the_price_decides():
    found = advice()

    assert (found.decision, found.recommended_batch_size) == ("increase", 1024)
    assert found.headline == "Raise the batch to 1,024"
    assert found.limited.binding == ()


def test_hours_are_steps_where_devices_are_added_with_the_batch():
    found = advice(wish=Question(examples_per_step=100.0), max_hours=1.5)

    min_steps, min_examples = least(found)
    needed = min_examples / (1.5 / HOURS_PER_STEP - min_steps)
    assert found.limited.batch_size == pytest.approx(needed)
    assert found.recommended_batch_size == math.ceil(needed)
    assert found.limited.binding == ("seconds",)
    assert found.headline == f"Raise the batch to {math.ceil(needed)}, your deadline"
    assert f"1.5 h need a batch of {math.ceil(needed):,} or more." in found.reason


def test_usd_are_examples_where_devices_are_added_with_the_batch():
    found = advice(max_usd=75.0)

    min_steps, min_examples = least(found)
    allowed = (75.0 / USD_PER_EXAMPLE - min_examples) / min_steps
    assert found.limited.batch_size == pytest.approx(allowed)
    assert found.recommended_batch_size <= allowed
    assert found.limited.binding == ("usd",)
    assert found.headline.endswith(", your budget")


def test_on_the_same_devices_hours_follow_the_line_of_step_times():
    spent = [stretch(128.0, 10 * (1 + 0.01 * 128))] * 5 + [stretch(256.0, 10 * (1 + 0.01 * 256))] * 5
    run = advised_run(spent=spent)

    found = advice(run, Question(examples_per_step=1e5), num_devices=8, max_hours=5.0)

    min_steps, min_examples = least(found)

    def hours(batch):
        return (min_steps + min_examples / batch) * (1 + 0.01 * batch) / 3600

    assert found.limited.binding == ("seconds",)
    assert hours(found.limited.batch_size) == pytest.approx(5.0)
    assert found.limited.batch_size > math.sqrt(1000 / 0.01)
    assert hours(found.recommended_batch_size) <= 5.0 + 1e-9


def test_an_impossible_deadline_says_the_least_that_is_possible():
    found = advice(max_hours=0.5)

    assert found.decision == "insufficient_evidence"
    assert found.recommended_batch_size is None
    assert found.headline == "No batch meets the limit"
    assert f"takes more than {least(found)[0] * HOURS_PER_STEP:,.3g} h" in found.reason
    assert found.schedule is None
    assert found.interval is not None


def test_an_impossible_budget_says_the_least_that_is_possible():
    found = advice(max_usd=10.0)

    assert found.recommended_batch_size is None
    assert f"takes more than {least(found)[1] * USD_PER_EXAMPLE:,.3g} USD" in found.reason


def test_a_deadline_and_a_budget_that_exclude_each_other_say_what_each_alone_allows():
    found = advice(max_hours=1.0, max_usd=75.0)

    min_steps, min_examples = least(found)
    needed = min_examples / (1.0 / HOURS_PER_STEP - min_steps)
    allowed = (75.0 / USD_PER_EXAMPLE - min_examples) / min_steps
    cheapest = (min_examples + min_steps * needed) * USD_PER_EXAMPLE
    fastest = (min_steps + min_examples / allowed) * HOURS_PER_STEP
    assert found.headline == "No batch meets both limits"
    assert set(found.limited.binding) == {"seconds", "usd"}
    assert found.limited.possible == (
        f"Cheapest within the deadline: {cheapest:,.3g} USD. Fastest within the budget: {fastest:,.3g} h."
    )
    critical = found.critical_batch
    ends = f"{number(critical.low)} – {number(critical.high)}"
    assert found.effect.endswith(
        f"All of it rests on a critical batch of {number(critical.value)}, which may be {ends}."
    )
    assert found.effect.startswith(found.limited.possible)
    assert found.next_step == "Relax either."


def test_interruptible_devices_stretch_the_hours_and_cut_the_price():
    spot = {"interruptions_per_device_hour": 0.01, "restart_hours": 0.5, "checkpoint_hours": 1.0}

    found = advice(max_usd=75.0, spot_price_share=0.3, **spot)
    on_demand = advice(max_usd=75.0)

    stretch_by = 1 / (1 - 0.01 * 8 * (0.5 + 0.5))
    now = next(one for one in found.predictions.batches if one.is_present)
    assert now.hours.value == pytest.approx(5000 * HOURS_PER_STEP * stretch_by)
    assert now.usd.value == pytest.approx(5000 * 256 * USD_PER_EXAMPLE * 0.3 * stretch_by)
    assert found.limited.binding == ()
    assert on_demand.limited.binding == ("usd",)


def test_memory_binds_and_its_limit_is_named():
    found = advice(wish=Question(examples_per_step=4000.0), examples_per_device=64, max_micro_batches=1)

    assert found.recommended_batch_size == 64 * 8
    assert found.headline == "Raise the batch to 512, your memory limit"
    assert "the price alone would choose 2,000" in found.reason


def test_the_data_set_is_a_limit_where_the_config_tells_its_size():
    found = advice(advised_run(config={"dataset_size": 600}))

    assert found.limited.binding == ("data",)
    assert found.recommended_batch_size == 512


def test_batches_are_multiples_of_devices_and_micro_batch_and_rounding_has_its_price():
    found = advice(num_devices=8, examples_per_device=24)

    x = 960 / found.interval.value
    assert found.recommended_batch_size == 960
    assert found.rounding_regret == pytest.approx((2 + x + 1 / x) / 4 - 1, rel=0.03)


def test_devices_that_no_batch_inside_the_limits_fills_say_so():
    found = advice(num_devices=8, examples_per_device=200, max_usd=75.0)

    assert found.recommended_batch_size is None
    assert found.decision == "insufficient_evidence"
    assert "devices" in found.next_step


def test_a_batch_that_is_nearly_as_good_as_the_limits_own_is_kept():
    run = advised_run(batch_size=480.0)

    found = advice(run, Question(examples_per_step=4000.0), examples_per_device=64, max_micro_batches=1)

    assert (found.decision, found.headline) == ("keep", "Keep 480")
    assert found.next_step.startswith("Nothing to change now")


def test_the_recommended_batch_is_inside_the_limits_whatever_they_are():
    for hours in (0.6, 0.8, 1.0, 1.7, 2.5):
        for usd in (67.0, 80.0, 120.0, 500.0):
            found = advice(max_hours=hours, max_usd=usd)

            if found.recommended_batch_size is None:
                assert found.limited.batch_size is None or "whole" in found.reason
                continue
            min_steps, min_examples = least(found)
            steps = min_steps + min_examples / found.recommended_batch_size
            assert steps * HOURS_PER_STEP <= hours * (1 + 1e-9)
            assert steps * found.recommended_batch_size * USD_PER_EXAMPLE <= usd * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "given", "words"),
    [
        ({"planned_steps": None}, {"max_hours": 1.0}, "no plan reaches beyond now"),
        ({"planned_steps": 500}, {"max_steps": 10.0}, "no plan reaches beyond now"),
        ({"spent": []}, {"max_hours": 1.0}, "no step time has been measured"),
        ({"usd_per_device_hour": None}, {"max_usd": 1.0}, "what a step costs is not known"),
        ({"num_devices": None}, {"max_usd": 1.0}, "what a step costs is not known"),
    ],
)
def test_a_limit_that_cannot_be_judged_says_what_is_missing(changes, given, words):
    found = advice(advised_run(**changes), **given)

    assert found.decision == "insufficient_evidence"
    assert words in found.reason
    assert found.next_step
    assert found.recommended_batch_size is None


def test_where_the_end_of_the_interval_cannot_meet_the_deadline_the_limit_stays_open_there():
    found = advice(kappa=UNCALIBRATED, max_hours=1.0)

    assert found.limited.high is None
    assert found.limited.low > 256
    assert found.decision == "increase"


@pytest.mark.parametrize("scale", [512.0, 1 / 7])
@pytest.mark.parametrize(
    ("wish", "given"),
    [
        (Question(), {}),
        (Question(preference=0.3), {"max_hours": 1.5}),
        (Question(usd_per_hour_sooner=20.0), {"max_usd": 75.0}),
        (Question(usd_per_hour_sooner=20.0), {"max_hours": 1.0, "max_usd": 75.0}),
    ],
)
def test_counting_in_another_unit_changes_no_recommendation(scale, wish, given):
    plain = recommend(advised_run(), Measured(KNOWN), replace(wish, **given))
    other = recommend(advised_run(scale=scale), Measured(KNOWN), replace(wish, **given))

    assert other.decision == plain.decision
    assert other.interval.value == pytest.approx(plain.interval.value * scale)
    assert other.limited.binding == plain.limited.binding
    if plain.limited.batch_size is None:
        assert other.limited.batch_size is None
        assert other.limited.possible == plain.limited.possible
    else:
        assert other.limited.batch_size == pytest.approx(plain.limited.batch_size * scale)
        now, before = (next(one for one in found.predictions.batches if one.is_present).usd for found in (other, plain))
        assert now.value == pytest.approx(before.value)
