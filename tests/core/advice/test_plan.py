from dataclasses import replace
from itertools import pairwise

import pytest

from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import RunSoFar, SpentPoint
from noisescale_core.advice.plan import forecast, growth
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend, round_batch
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_core.theory import schedule as theory
from noisescale_core.theory.learning_rate import rescale
from noisescale_core.theory.schedule import Bounds, stages

PHI, BATCH = 1000.0, 250.0


def estimate(state=State.RESOLVED):
    return NoiseScaleEstimate(state, PHI, 800.0, 1300.0, 0.95, 7.0, None, None, 64, 16, 1.0, 0.1, 0.001, 0.0001)


def stretches(exponent, scale=1.0):
    """100 stretches of 10 steps whose noise scale goes as their progress to the exponent, and ends at PHI."""
    found, progress = [], 0.0
    for place in range(100):
        value = PHI * ((place + 1) / 100) ** exponent
        found.append(SpentPoint(10 * BATCH * scale, BATCH * scale, value * scale, None, None))
        progress += 10 * BATCH / (BATCH + value)
    return found, progress


def run(exponent=0.0, **changes):
    spent, _ = stretches(exponent)
    fields = {"noise_scale": estimate(), "batch_size": BATCH, "optimizer": "SGD", "learning_rate": 0.1, "spent": spent}
    return RunSoFar(**(fields | changes))


def planned(so_far=None, rate=1000.0, steps_left=1000, **given):
    """The answer after 1,000 steps of a plan, for a reader to whom a step is worth `rate` examples."""
    now = replace(so_far or run(), steps_done=1000, planned_steps=1000 + steps_left)
    return recommend(now, asked=Question(examples_per_step=rate, **given))


def least_steps(critical_batch):
    """Of the 1,000 steps that are left, with batches beyond all bounds."""
    return 1000 * BATCH / (BATCH + critical_batch)


def test_a_constant_noise_scale_needs_one_batch_and_saves_nothing():
    answer = planned()
    found, critical = answer.schedule, answer.critical_batch.value

    assert [(stage.step, stage.batch_size) for stage in found.stages] == [(1000, 1024)]
    assert found.gamma == pytest.approx(1)
    assert found.saving == pytest.approx(0, abs=1e-12)
    assert found.stages[0].num_steps == pytest.approx(1000 * (1 + critical / 1024) / (1 + critical / BATCH))
    assert found.stages[0].examples == 1000 * BATCH


def test_the_growth_is_read_from_the_progress_of_the_run():
    spent = [SpentPoint(2 * (1 + place), 1.0, 1.0 + place, None, None) for place in range(40)]

    exponent, progress = growth(spent)

    assert progress == pytest.approx(sum(2 * (1 + p) / (2 + p) for p in range(40)))
    assert 0.9 < exponent < 1.2


def test_too_few_stretches_foretell_no_growth():
    spent, _ = stretches(1.0)

    assert growth(spent[:8])[0] == 0.0
    assert growth([])[0] == 0.0


def test_the_forecast_is_held_beyond_twice_the_progress():
    found = forecast(PHI, BATCH, exponent=2.0, progress=10.0, steps_left=10_000)

    assert found[0].noise_scale == PHI
    assert found[-1].noise_scale == 4 * PHI


def test_a_growing_noise_scale_gives_rising_stages_with_the_learning_rate_of_each():
    answer = planned(run(exponent=2.0), steps_left=20_000)
    found, critical = answer.schedule, answer.critical_batch.value

    batches = [stage.batch_size for stage in found.stages]
    assert len(batches) > 1
    assert all(after / before > 1.3 for before, after in pairwise(batches))
    assert batches == [round_batch(batch) for batch in batches]
    for stage in found.stages:
        rule = rescale(optimizer="SGD", from_batch=BATCH, to_batch=stage.batch_size, noise_scale=critical)
        assert stage.learning_rate == pytest.approx(0.1 * rule.factor)
    assert found.gamma < 1
    assert found.saving > 0


def test_a_falling_noise_scale_never_lowers_the_batch():
    found = planned(run(exponent=-1.0), steps_left=20_000).schedule

    assert len(found.stages) == 1


def test_a_deadline_that_binds_is_met_by_the_schedule():
    critical = planned(rate=100.0).critical_batch.value
    least = least_steps(critical)

    found = planned(rate=100.0, max_steps=1.5 * least)

    assert found.limited.binding == ("steps",)
    assert found.limited.batch_size == pytest.approx(2 * critical)
    assert [stage.batch_size for stage in found.schedule.stages] == [found.recommended_batch_size]
    assert 1.45 * least < sum(stage.num_steps for stage in found.schedule.stages) < 1.5 * least


def test_an_impossible_deadline_says_what_is_possible_and_plans_nothing():
    found = planned(max_steps=100)

    assert found.schedule is None
    assert found.limited.batch_size is None
    assert f"takes more than {number(least_steps(found.critical_batch.value))}" in found.schedule_missing


def test_a_deadline_and_a_budget_that_exclude_each_other_are_both_named():
    found = planned(max_steps=270, max_examples=210_000)

    assert set(found.limited.binding) == {"steps", "examples"}
    assert "exclude each other" in found.schedule_missing


def test_batches_are_whole_micro_batches_of_all_devices():
    found = planned(examples_per_device=24, num_devices=8, max_micro_batches=4)

    assert found.recommended_batch_size == 768
    assert found.limited.binding == ("memory",)
    assert [stage.batch_size for stage in found.schedule.stages] == [768]


@pytest.mark.parametrize("state", [State.TENTATIVE, State.UNRESOLVED])
def test_nothing_is_planned_below_resolved(state):
    found = planned(run(noise_scale=estimate(state)))

    assert found.schedule is None
    assert "resolved" in found.schedule_missing


def test_without_a_plan_a_deadline_cannot_be_judged():
    found = planned(steps_left=0, max_steps=10)

    assert found.decision == "insufficient_evidence"
    assert "max_steps" in found.reason
    assert "planned_steps" in found.next_step
    without = planned(steps_left=0)
    assert without.limited.batch_size == without.interval.value


def test_counting_in_tokens_changes_no_stage():
    spent, _ = stretches(2.0, scale=512.0)
    scale = replace(estimate(), value=PHI * 512, low=800.0 * 512, high=1300.0 * 512)
    tokens = run(noise_scale=scale, batch_size=BATCH * 512, spent=spent)

    in_tokens = planned(tokens, rate=512e3, steps_left=20_000).schedule
    in_examples = planned(run(exponent=2.0), steps_left=20_000).schedule

    assert [s.step for s in in_tokens.stages] == pytest.approx([s.step for s in in_examples.stages], abs=40)
    assert [s.batch_size / 512 for s in in_tokens.stages] == pytest.approx(
        [s.batch_size for s in in_examples.stages], rel=1e-3
    )
    assert in_tokens.gamma == pytest.approx(in_examples.gamma)


def test_the_forecast_reaches_what_the_plan_would_reach():
    found = forecast(PHI, BATCH, exponent=0.0, progress=0.0, steps_left=1000)

    outcome = theory.outcome(found, [BATCH] * len(found))
    assert outcome.steps == pytest.approx(1000)


@pytest.mark.parametrize(
    ("rate", "given"),
    [
        (1480.0, {}),
        (100.0, {"max_steps": 310}),
        (100.0, {"max_steps": 330, "max_examples": 1e6}),
        (700.0, {"num_devices": 96}),
        (700.0, {"examples_per_device": 24, "num_devices": 8}),
        (1e5, {"examples_per_device": 24, "num_devices": 8, "max_micro_batches": 3}),
        (1480.0, {"max_micro_batches": 4}),
    ],
)
def test_one_batch_for_the_rest_is_the_recommended_one(rate, given):
    found = planned(rate=rate, **given)

    assert [stage.batch_size for stage in found.schedule.stages] == [found.recommended_batch_size]


def test_where_no_whole_batch_fits_nothing_is_planned_either():
    found = planned(max_examples=450_000, examples_per_device=600, num_devices=8)

    assert found.recommended_batch_size is None
    assert found.schedule is None
    assert (
        found.schedule_missing == found.reason == "No whole multiple of devices × micro-batch lies inside the limits."
    )


def test_a_price_that_the_run_cannot_tell_is_what_the_schedule_misses():
    now = replace(run(), steps_done=1000, planned_steps=2000)

    found = recommend(now, asked=Question(fixed_hardware=True))

    assert found.schedule_missing == found.reason
    assert "step times of two batch sizes" in found.schedule_missing


def test_waiting_for_the_next_whole_batch_costs_no_more_than_the_hysteresis():
    foretold = [theory.Stretch(1.0, 100 * 1.01**place) for place in range(300)]

    found = stages(foretold, examples_per_step=100.0, bounds=Bounds(), rounded=round_batch)

    best = [theory.scheduled_batch(noise_scale=part.noise_scale, examples_per_step=100.0) for part in foretold]
    exact = theory.outcome(foretold, best).cost(100.0)
    assert sum(100.0 * stage.steps + stage.examples for stage in found) < 1.02 * exact
    assert len(found) > 3


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e-3, 1e160, 1.7e308])
@pytest.mark.parametrize("batch_size", [5e-324, 1.0, 1e300])
@pytest.mark.parametrize(
    "given",
    [{}, {"max_steps": 10}, {"max_examples": 10}, {"num_devices": 4}, {"max_hours": 1}, {"max_usd": 1}],
)
def test_no_finite_noise_scale_is_too_absurd_for_an_answer(value, batch_size, given):
    scale = replace(estimate(), value=value, low=value, high=value)
    spent = [SpentPoint(1e4, batch_size, value, None, None) for _ in range(50)]

    found = planned(run(noise_scale=scale, batch_size=batch_size, spent=spent), steps_left=2**62, **given)

    assert found.schedule is not None or found.schedule_missing
    assert found.reason


def test_a_growth_of_a_thousandfold_in_one_doubling_is_taken_for_noise():
    spent = [SpentPoint(10.0, 1.0, 1e-3 * 2.0**place, None, None) for place in range(40)]

    assert growth(spent)[0] == 0.0


def test_a_stage_is_rounded_to_what_the_devices_can_run():
    found = planned(examples_per_device=24, num_devices=8).schedule

    assert [stage.batch_size for stage in found.stages] == [960]
