import pytest

from advised_runs import KNOWN, STEPS_LEFT, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend

HOURS_PER_STEP = 2 / 3600


def advice(run=None, kappa=KNOWN, batches=(), **given):
    return recommend(run or advised_run(), Measured(kappa), Question(**given, batch_sizes=batches))


def at(found, batch):
    return next(one for one in found.predictions.batches if one.batch_size == batch)


def factor(found, batch):
    """Of the steps from 256 to a batch, by the answer's own critical batch."""
    critical = found.critical_batch.value
    return (1 + critical / batch) / (1 + critical / 256)


def test_the_rest_of_the_plan_at_the_present_the_recommended_and_any_asked_batch():
    found = advice(advised_run(units_per_example=2048.0), batches=[512.0, 256.0])

    assert [one.batch_size for one in found.predictions.batches] == [256, 512, 1024]
    assert [one.is_present for one in found.predictions.batches] == [True, False, False]
    assert [one.is_recommended for one in found.predictions.batches] == [False, False, True]
    steps = STEPS_LEFT * factor(found, 512)
    half = at(found, 512)
    assert half.steps.value == pytest.approx(steps)
    assert half.examples.value == pytest.approx(512 * steps)
    assert half.units.value == pytest.approx(2048 * 512 * steps)
    assert half.hours.value == pytest.approx(steps * HOURS_PER_STEP)
    assert half.usd.value == pytest.approx(steps * HOURS_PER_STEP * 16 * 3.0)
    assert half.num_devices == 16


def test_the_present_batch_has_no_error_and_others_carry_both():
    found = advice(kappa=UNCALIBRATED)

    now, best = at(found, 256), at(found, found.recommended_batch_size)
    assert now.steps.low == now.steps.high == STEPS_LEFT
    assert best.steps.low < best.steps.model.low < best.steps.statistical.low < best.steps.value
    assert best.steps.value < best.steps.statistical.high < best.steps.model.high < best.steps.high


def test_on_the_same_devices_a_step_takes_longer_at_a_larger_batch():
    # 0.4 s and 1/160 s for each example
    timed = [stretch(128.0, 12.0)] * 25 + [stretch()] * 25

    found = advice(advised_run(spent=timed), num_devices=8, batches=[512.0])

    assert at(found, 512).num_devices == 8
    assert at(found, 512).hours.value == pytest.approx(at(found, 512).steps.value * 3.6 / 3600)
    assert "by the step times of the batches" in found.predictions.assumes


def test_without_a_plan_nothing_is_foretold_and_without_times_no_hours():
    assert advice(advised_run(planned_steps=None)).predictions is None
    assert at(advice(advised_run(spent=[])), 256).hours is None
    assert at(advice(advised_run(usd_per_device_hour=None)), 256).usd is None


def test_had_we_used_the_recommended_batch_the_same_progress_would_have_taken_so_much():
    found = advice().counterfactual

    steps = 500 * (1 + 1000 / 1024) / (1 + 1000 / 256)
    assert (found.batch_size, found.steps_taken, found.covered) == (1024, 500, 1)
    assert found.steps.value == pytest.approx(steps)
    assert found.examples.value == pytest.approx(1024 * steps)
    assert found.usd.value == pytest.approx(8 * 3.0 * 1000 / 3600 * 1024 * steps / (500 * 256))


def test_waste_is_said_in_hours_too():
    found = advice().waste

    assert found.hours.value == pytest.approx(1000 / 3600 * 256 / 1256)
    assert found.hours.value / found.fraction.value == pytest.approx(found.usd.value / found.fraction.value / 24)


def test_on_one_device_what_was_redundant_is_no_share_of_money_or_time():
    found = advice(advised_run(num_devices=1)).waste

    assert found.fraction.value == pytest.approx(256 / 1256)
    assert (found.usd, found.hours) == (None, None)


def test_what_devices_would_buy():
    answer = advice()
    found, critical = answer.parallelism, answer.critical_batch.value

    assert found.max_useful_devices == 30
    assert found.greatest_speedup.value == pytest.approx(1 + critical / 256)
    twice = found.twice_the_devices
    assert twice.time_factor.value == pytest.approx((1 + critical / 512) / (1 + critical / 256))
    assert twice.compute_factor.value == pytest.approx((512 + critical) / (256 + critical))
    assert found.half_the_budget is None
    assert "No batch makes the run half as expensive" in found.text


def test_a_batch_far_above_the_critical_one_can_be_halved_in_price():
    answer = advice(advised_run(batch_size=4000.0, spent=[stretch(4000.0)] * 50))

    found = answer.parallelism
    assert found.half_the_budget.batch_size == pytest.approx((4000 - answer.critical_batch.value) / 2)
    assert found.half_the_budget.compute_factor.value == pytest.approx(0.5)


def test_the_text_of_the_effect_says_hours_and_usd_of_both_batches():
    found = advice()

    hours = STEPS_LEFT * factor(found, 1024) * HOURS_PER_STEP
    then = at(found, 1024)
    assert then.hours.value == pytest.approx(hours)
    ends = [f"({one.low:.3g} – {one.high:.3g})" for one in (then.hours, then.usd)]
    assert f"{hours:.3g} {ends[0]} h instead of 2.78 h, {hours * 96:.3g} {ends[1]} USD instead of 66.7" in found.effect
    assert "USD instead of 66.7 USD" in found.effect
