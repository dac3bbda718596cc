from dataclasses import replace

import pytest

from advised_runs import KNOWN, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.limits.pace import pace_of, step_line, step_seconds, timed_batches
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend


def two_batches():
    """Steps of 1 s + 0.01 s for each example, at batches of 128 and 256."""
    return [stretch(128.0, 10 * 2.28)] * 6 + [stretch(256.0, 10 * 3.56)] * 6


def test_what_an_hour_is_worth_becomes_examples_by_the_price_of_the_devices():
    found = recommend(advised_run(), Measured(KNOWN), Question(usd_per_hour_sooner=48.0))

    # 48 USD are 16 device-hours, and each device puts 32 examples through a step
    assert found.exchange_rate.examples_per_step == pytest.approx(16 * 32)
    assert found.exchange_rate.source == "usd_per_hour_sooner"
    assert "an hour sooner is worth 48 USD" in found.exchange_rate.text
    assert found.interval.value == pytest.approx((512 * found.critical_batch.value) ** 0.5, rel=0.01)


def test_interruptible_devices_make_an_hour_worth_more_of_them():
    wish = Question(usd_per_hour_sooner=48.0)

    found = recommend(advised_run(), Measured(KNOWN), replace(wish, spot_price_share=0.25))

    # at 0.75 USD a device-hour the 48 USD are 64 of them
    assert found.exchange_rate.examples_per_step == pytest.approx(64 * 32)


def test_steps_that_took_no_longer_at_a_larger_batch_are_not_foretold_to():
    run = advised_run(spent=[stretch(128.0, 20.0)] * 20 + [stretch(256.0, 20.0)] * 20)

    found = recommend(run, Measured(KNOWN), Question(num_devices=8, max_hours=2.0, max_usd=60.0, batch_sizes=[128.0]))

    hours = {one.batch_size: one.hours.value / one.steps.value for one in found.predictions.batches}
    assert hours[128.0] == hours[256.0] == pytest.approx(2 / 3600)
    assert "takes as long at any batch" in found.predictions.assumes
    assert {"seconds", "usd"} >= set(found.limited.binding)


def test_a_budget_is_one_of_steps_where_steps_take_as_long_at_any_batch():
    run = advised_run(spent=[stretch(128.0, 20.0)] * 20 + [stretch(256.0, 20.0)] * 20)

    found = recommend(run, Measured(KNOWN), Question(preference=0.01, num_devices=8, max_usd=40.0))

    # 8 devices at 3 USD and 2 s a step: 3,000 steps
    row = next(one for one in found.predictions.batches if one.is_recommended)
    assert found.limited.binding == ("usd",)
    assert row.usd.value == pytest.approx(40.0, rel=0.03)
    assert row.steps.value == pytest.approx(3000, rel=0.03)
    assert row.usd.value <= 40.0


def test_on_fixed_hardware_the_step_times_decide():
    found = recommend(advised_run(spent=two_batches()), Measured(KNOWN), Question(fixed_hardware=True))

    assert found.exchange_rate.examples_per_step == pytest.approx(1 / 0.01)
    assert found.exchange_rate.source == "fixed_hardware"
    assert found.interval.value == pytest.approx((100 * found.critical_batch.value) ** 0.5, rel=0.01)


@pytest.mark.parametrize("wish", [Question(), Question(preference=0.5)])
def test_where_nobody_says_a_price_two_timed_batches_do_and_the_answer_says_that_it_assumes_so(wish):
    timed, asked = (
        recommend(advised_run(spent=two_batches()), Measured(KNOWN), one)
        for one in (wish, Question(fixed_hardware=True))
    )

    assert timed.exchange_rate.examples_per_step == asked.exchange_rate.examples_per_step
    assert (timed.recommended_batch_size, timed.odds) == (asked.recommended_batch_size, asked.odds)
    assert timed.exchange_rate.text == f"assumes that the devices stay as they are: {asked.exchange_rate.text}"
    assert [one.code for one in timed.warnings] == [*(one.code for one in asked.warnings), "no_price"]
    assert (len(timed.otherwise), asked.otherwise) == (2, ())


@pytest.mark.parametrize(
    ("changes", "wish", "words"),
    [
        ({"usd_per_device_hour": None}, Question(usd_per_hour_sooner=1.0), "usd_per_device_hour missing"),
        ({"num_devices": None}, Question(usd_per_hour_sooner=1.0), "num_devices missing"),
        ({}, Question(fixed_hardware=True), "step times of two batch sizes"),
        (
            {"spent": [stretch(128.0, 10.0)] * 4 + [stretch(256.0, 20.0)] * 4},
            Question(fixed_hardware=True),
            "in proportion to its batch",
        ),
        (
            {"spent": [stretch(128.0, 10.0)] * 4 + [stretch(256.0, 10.0)] * 4},
            Question(fixed_hardware=True),
            "took no longer at the larger of the batches that the run has used (128 and 256 images)",
        ),
    ],
)
def test_a_price_that_the_run_cannot_tell_says_what_is_missing(changes, wish, words):
    found = recommend(advised_run(**changes), Measured(KNOWN), wish)

    assert found.decision == "insufficient_evidence"
    assert words in found.reason
    assert found.recommended_batch_size is None
    assert found.next_step


def test_two_prices_of_one_step_are_refused_and_both_are_named():
    with pytest.raises(ValueError, match=r"preference and usd_per_hour_sooner .* give one"):
        Question(preference=0.5, usd_per_hour_sooner=3.0)


def test_a_step_time_is_the_median_at_the_present_batch_over_the_latest_window():
    spent = [stretch(128.0, 5.0)] * 90 + [stretch(256.0, 20.0)] * 5 + [stretch(256.0, 500.0), stretch(256.0, None)]

    assert step_seconds(spent) == 2.0
    assert step_seconds(spent[:1]) is None


def test_the_line_of_step_times_goes_through_the_medians_of_each_batch():
    line = step_line(timed_batches([*two_batches(), stretch(256.0, 900.0)]))

    assert line.overhead_seconds == pytest.approx(1.0)
    assert line.seconds_per_example == pytest.approx(0.01)
    assert step_line(timed_batches([stretch()] * 50)) is None


def test_the_line_is_moved_to_the_step_time_of_now():
    run = advised_run(spent=[*two_batches(), *[stretch(256.0, 10 * 7.12)] * 5])

    pace = pace_of(run, Question(fixed_hardware=True))

    assert pace.seconds(256.0) == pytest.approx(pace.step_seconds)
    assert pace.seconds(512.0) / pace.seconds(256.0) == pytest.approx(
        pace.line.seconds(512.0) / pace.line.seconds(256.0)
    )
