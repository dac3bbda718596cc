"""Schedules on one profile: the published γ, the constant batch as the measure, and what each may not beat."""

import math

import pytest

from noisescale.theory.advice.pace import Pace
from noisescale.theory.schedule import gamma, trade_off_of
from noisescale.theory.trade_off import TradeOff
from noisescale_server.services.tradeoff_policies import policies, profile_of

TARGET = TradeOff(min_steps=1000.0, min_examples=1e6, target="loss 2")
PACE = Pace(1000.0, 2.0, "devices_with_the_batch", None, 8, 3.0, None)


def by_name(growth=0.0, rate=1000.0, pace=None):
    found = policies(profile_of(TARGET, growth), examples_per_step=rate, pace=pace)
    return {policy.name: policy for policy in found}


def test_the_profile_has_the_steps_and_examples_of_the_trade_off_and_the_growth_that_was_said():
    profile = profile_of(TARGET, 1.0)

    whole = trade_off_of(profile, target="loss 2")
    assert whole.min_steps == pytest.approx(1000)
    assert whole.min_examples == pytest.approx(1e6)
    assert gamma(profile) == pytest.approx(8 / 9, rel=1e-3)


def test_a_constant_noise_scale_is_served_best_by_a_constant_batch():
    found = by_name()

    assert found["constant"].steps == pytest.approx(2000)
    assert found["constant"].examples == pytest.approx(2e6)
    assert found["follow"].relative_cost == pytest.approx(1)
    assert min(policy.relative_cost for policy in found.values()) >= 1 - 1e-9


def test_following_a_growing_noise_scale_saves_what_gamma_says_and_no_schedule_saves_more():
    found = by_name(growth=2.0)

    saved = (1 - math.sqrt(gamma(profile_of(TARGET, 2.0)))) / 2
    assert 1 - found["follow"].relative_cost == pytest.approx(saved, rel=1e-3)
    assert all(policy.relative_cost >= found["follow"].relative_cost - 1e-12 for policy in found.values())
    assert found["follow_in_stages"].relative_cost < 1
    assert [policy.relative_cost for policy in found.values()] == sorted(
        policy.relative_cost for policy in found.values()
    )


def test_a_late_switch_takes_half_the_batch_for_three_quarters_of_the_progress():
    found = by_name()["late_switch"]

    assert (found.first_batch, found.last_batch) == (500, 2000)
    assert found.steps == pytest.approx(750 * 3 + 250 * 1.5)
    assert found.examples == pytest.approx(750 * 1500 + 250 * 3000)


def test_doublings_stop_where_the_noise_scale_is_below_twice_the_batch():
    found = by_name(rate=1500.0)["doublings"]

    best = math.sqrt(1500.0 * 1000.0)
    assert (found.first_batch, found.last_batch) == pytest.approx((best / 2, best / 2))


def test_a_seesaw_ends_at_four_times_the_best_batch():
    found = by_name()["seesaw"]

    assert (found.first_batch, found.last_batch) == (250, 4000)


def test_hours_and_usd_follow_steps_and_examples_where_devices_are_added_with_the_batch():
    found = by_name(pace=PACE)["constant"]

    assert found.hours == pytest.approx(2000 * 2 / 3600)
    assert found.usd == pytest.approx(2000 * 2 / 3600 * 8 * 3)
    assert by_name()["constant"].hours is None


@pytest.mark.parametrize("growth", [-1.0, -3.0, math.inf, math.nan])
def test_a_noise_scale_cannot_fall_faster_than_progress_rises(growth):
    with pytest.raises(ValueError, match="growth must exceed -1"):
        profile_of(TARGET, growth)
