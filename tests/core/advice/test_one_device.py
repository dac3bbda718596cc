"""A run on one device keeps it: nothing is said that takes more of them, or a part of one."""

import pytest

from advised_runs import KNOWN, STEPS_LEFT, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.limits.pace import pace_of
from noisescale_core.advice.question import NOTHING_ASKED, Question
from noisescale_core.advice.recommendation import recommend

TWO_TIMED = [stretch(128.0, 12.0)] * 25 + [stretch()] * 25
"""0.4 s a step and 1/160 s for each example."""

STAY = [{"num_devices": 1}, {"num_devices": 8, "asked": {"num_devices": 8}}]
"""A run on one device, and a reader who says that eight stay."""


def advice(num_devices=1, spent=None, asked=None, **given):
    run = advised_run(num_devices=num_devices, spent=spent)
    return recommend(run, Measured(KNOWN), Question(**{"batch_sizes": [128.0], **(asked or {}), **given}))


def at(found, batch):
    return next(one for one in found.predictions.batches if one.batch_size == batch)


@pytest.mark.parametrize("case", STAY)
def test_with_one_timed_batch_steps_and_examples_of_others_are_told_and_no_time_or_cost(case):
    found = advice(**case)

    then, smaller = at(found, found.recommended_batch_size), at(found, 128)
    factor = (1 + found.critical_batch.value / then.batch_size) / (1 + found.critical_batch.value / 256)
    assert (found.decision, then.batch_size) == ("increase", 1024 if case["num_devices"] == 1 else 992)
    assert then.steps.value == pytest.approx(STEPS_LEFT * factor)
    assert then.examples.value == pytest.approx(then.batch_size * STEPS_LEFT * factor)
    assert {then.hours, then.usd, smaller.hours, smaller.usd} == {None}
    assert at(found, 256).hours.value == pytest.approx(STEPS_LEFT * 2 / 3600)
    assert at(found, 256).usd.value == pytest.approx(STEPS_LEFT * 2 / 3600 * 3 * case["num_devices"])
    assert {one.num_devices for one in found.predictions.batches} == {case["num_devices"]}


@pytest.mark.parametrize("case", STAY)
def test_why_the_time_is_not_known_is_one_short_sentence(case):
    found = advice(**case)

    one = "this device has" if case["num_devices"] == 1 else "these devices have"
    assert found.predictions.assumes == f"Time at another batch is not known: {one} timed one batch."
    assert " h" not in found.effect
    assert "USD" not in found.effect


def test_two_timed_batches_tell_time_and_cost_of_any_on_the_one_device():
    found = advice(spent=TWO_TIMED)

    then = at(found, found.recommended_batch_size)
    seconds = 0.4 + then.batch_size / 160
    assert then.hours.value == pytest.approx(then.steps.value * seconds / 3600)
    assert then.usd.value == pytest.approx(3 * then.hours.value)
    assert then.num_devices == 1
    assert found.exchange_rate.examples_per_step == pytest.approx(0.4 * 160)


@pytest.mark.parametrize("case", STAY)
def test_devices_that_stay_are_not_added_or_left_out(case):
    found = advice(**case, examples_per_device=4)

    assert found.parallelism is None
    assert found.counterfactual.usd is None
    assert found.counterfactual.examples.value > 0
    assert [one.hours for one in found.next_steps if one.kind == "branch"] == [None]


def test_a_batch_of_less_than_a_device_has_one_device_and_no_time():
    run = advised_run()
    pace = pace_of(run, NOTHING_ASKED)

    assert (pace.devices(256.0), pace.devices(32.0), pace.devices(4.0)) == (8, 1, 1)
    assert pace.seconds(32.0) == pace.seconds(1000.0) == 2.0
    assert pace.usd_per_step(32.0) == pytest.approx(3 * 2 / 3600)
    assert (pace.seconds(31.0), pace.usd_per_step(31.0)) == (None, None)


def test_a_deadline_holds_where_a_step_surely_does_not_take_longer():
    # the rest takes 2.78 h at 256: smaller batches take as long a step at most, larger ones in proportion at most
    found = advice(max_hours=3.0)

    critical = found.critical_batch.value
    min_steps = STEPS_LEFT / (1 + critical / 256)
    low = critical * min_steps / (3 * 1800 - min_steps)
    high = 3 * 1800 * 256 / min_steps - critical
    assert found.limited.batch_size == pytest.approx(high)
    assert low < 256 < high
    assert found.recommended_batch_size <= high


@pytest.mark.parametrize(("limit", "takes"), [({"max_hours": 2.0}, "2 h"), ({"max_usd": 5.0}, "5 USD")])
def test_a_limit_that_the_batch_in_use_misses_asks_for_a_second_timed_batch(limit, takes):
    found = advice(**limit)

    assert (found.decision, found.recommended_batch_size) == ("insufficient_evidence", None)
    assert f"{takes} are too few for the batch of 256" in found.reason
    assert "not known, as one has been timed" in found.reason
    assert "at another batch" in found.next_step


def test_an_hour_sooner_is_an_hour_less_to_pay_on_a_device_that_stays():
    untold, told = advice(usd_per_hour_sooner=50.0), advice(spent=TWO_TIMED, usd_per_hour_sooner=50.0)

    assert untold.decision == "insufficient_evidence"
    assert "an hour sooner is an hour less to pay" in untold.reason
    assert told.exchange_rate.examples_per_step == pytest.approx(0.4 * 160)


def test_a_budget_that_buys_no_whole_device_is_said_to():
    # 8 devices of 32 examples each: 54.7 USD on one of them, and 53 were a part of one enough
    run = advised_run()
    least = recommend(run, Measured(KNOWN), NOTHING_ASKED).critical_batch.value
    min_steps = STEPS_LEFT / (1 + least / 256)
    each = 8 * 3.0 * 2 / 3600 / 256

    found = recommend(run, Measured(KNOWN), Question(max_usd=min_steps * (least + 16) * each))

    assert found.recommended_batch_size is None
    assert f"takes {min_steps * (least + 32) * each:.3g} USD on one device" in found.reason
