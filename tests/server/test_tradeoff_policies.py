"""Schedules on one profile: the published γ, the constant batch as the measure, and what each may not beat."""

import csv
import math
from pathlib import Path

import pytest

from noisescale_core.advice.limits.pace import Pace
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.schedule import gamma, trade_off_of
from noisescale_core.theory.trade_off import TradeOff
from noisescale_server.services.planner.policies import MEASURED, Terrain, policies, profile_of

TARGET = TradeOff(min_steps=1000.0, min_examples=1e6, target="loss 2")
PACE = Pace(1000.0, 2.0, "devices_with_the_batch", None, 8, 3.0, None)


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "policies.csv"


def by_name(growth=0.0, rate=1000.0, pace=None, critical=(1000.0, 500.0, 2000.0)):
    value, low, high = critical
    known = estimate_from_interval(value, low=low, high=high)
    found = policies(Terrain(profile_of(TARGET, growth), known, 1000.0, pace), examples_per_step=rate)
    return {policy.name: policy for policy in found}


def predicted(found):
    return [policy for policy in found.values() if policy.relative_cost is not None]


def test_the_profile_has_the_steps_and_examples_of_the_trade_off_and_the_growth_that_was_said():
    profile = profile_of(TARGET, 1.0)

    whole = trade_off_of(profile, target="loss 2")
    assert whole.min_steps == pytest.approx(1000)
    assert whole.min_examples == pytest.approx(1e6)
    assert gamma(profile) == pytest.approx(8 / 9, rel=1e-3)


def test_a_constant_noise_scale_is_served_best_by_a_constant_batch():
    found = by_name()

    assert found["constant"].steps.value == pytest.approx(2000)
    assert found["constant"].examples.value == pytest.approx(2e6)
    assert found["follow"].relative_cost == pytest.approx(1)
    assert min(policy.relative_cost for policy in predicted(found)) >= 1 - 1e-9


def test_following_a_growing_noise_scale_saves_what_gamma_says_and_no_schedule_saves_more():
    found = by_name(growth=2.0)

    saved = (1 - math.sqrt(gamma(profile_of(TARGET, 2.0)))) / 2
    assert 1 - found["follow"].relative_cost == pytest.approx(saved, rel=1e-3)
    assert all(policy.relative_cost >= found["follow"].relative_cost - 1e-12 for policy in predicted(found))
    assert found["follow_in_stages"].relative_cost < 1
    costs = [policy.relative_cost for policy in predicted(found)]
    assert costs == sorted(costs)


def test_a_late_switch_takes_half_the_batch_for_three_quarters_of_the_progress():
    found = by_name()["late_switch"]

    assert (found.first_batch, found.last_batch) == (500, 2000)
    assert found.steps.value == pytest.approx(750 * 3 + 250 * 1.5)
    assert found.examples.value == pytest.approx(750 * 1500 + 250 * 3000)


def test_doublings_stop_where_the_noise_scale_is_below_twice_the_batch():
    found = by_name(rate=1500.0)["doublings"]

    best = round(math.sqrt(1500.0 * 1000.0))
    assert (found.first_batch, found.last_batch) == (round(best / 2), round(best / 2))


def test_batches_of_schedules_are_whole_and_one_at_least():
    found = by_name(rate=1e-4)

    batches = [batch for one in found.values() for batch in (one.first_batch, one.last_batch) if batch is not None]
    assert all(batch == round(batch) >= 1 for batch in batches)


def test_a_seesaw_ends_at_four_times_the_best_batch():
    found = by_name()["seesaw"]

    assert (found.first_batch, found.last_batch) == (250, 4000)


def test_hours_and_usd_follow_steps_and_examples_where_devices_are_added_with_the_batch():
    found = by_name(pace=PACE)["constant"]

    assert found.hours.value == pytest.approx(2000 * 2 / 3600)
    assert found.usd.value == pytest.approx(2000 * 2 / 3600 * 8 * 3)
    assert by_name()["constant"].hours is None


@pytest.mark.parametrize("growth", [-1.0, -3.0, math.inf, math.nan])
def test_a_noise_scale_cannot_fall_faster_than_progress_rises(growth):
    with pytest.raises(ValueError, match="growth must exceed -1"):
        profile_of(TARGET, growth)


def test_intervals_hold_the_planned_batches_and_the_steps_of_the_plan_where_b_crit_is_uncertain():
    found = by_name()
    at_the_plan, late = found["constant"], found["late_switch"]

    # the best constant batch is that of the plan: its steps are known whatever B_crit is
    assert (at_the_plan.steps.low, at_the_plan.steps.high) == pytest.approx((2000, 2000))
    # B_crit 2,000 with 2,000 steps at batch 1,000: S_min 666.7; 3/4 of it at 500 takes 1 + 4, 1/4 at 2,000 1 + 1
    assert late.steps.high == pytest.approx(2000 / 3 * (0.75 * 5 + 0.25 * 2))
    assert late.steps.low < late.steps.value < late.steps.high
    assert (late.steps.statistical.low, late.steps.model.low) == pytest.approx((late.steps.low, late.steps.value))


def test_an_open_end_of_b_crit_leaves_finite_steps_at_the_plan():
    found = by_name(critical=(1000.0, None, None))["late_switch"]

    assert found.steps.low == pytest.approx(2000 * (0.75 + 0.25))
    assert found.steps.high == pytest.approx(2000 * (0.75 * 2 + 0.25 * 0.5))


def test_the_products_own_policy_is_measured_and_not_predicted():
    found = by_name()["noisescale"]

    assert found.steps is None
    assert found.measured_regret.median == pytest.approx(0.633649)


@pytest.mark.parametrize("name", list(MEASURED))
def test_measured_regrets_are_those_of_the_benchmarks_results(name):
    told = MEASURED[name]
    with RESULTS.open(newline="") as file:
        rows = {
            row["kind"]: row
            for row in csv.DictReader(file)
            if (row["split"], row["rate"], row["price_over_b_crit"]) == ("held-out", "constant", "1")
            and row["policy"] == told.policy
        }

    assert [told.median, told.p90] == pytest.approx([float(rows["all"][key]) / 100 for key in ("median", "p90")])
    right = [float(rows["right"][key]) / 100 for key in ("median", "p90")]
    assert [told.median_right, told.p90_right] == pytest.approx(right)
    assert [told.num_runs, told.num_runs_right] == [int(rows[kind]["runs"]) for kind in ("all", "right")]
