"""B_crit = κ φ: the two errors, what is usual about the batch, and κ by how far a run has come."""

import math

import pytest

from advised_runs import KNOWN, RESOLVED, advised_run
from noisescale_core.advice.evidence.critical_belief import USUAL_LOG_SD, critical_belief, critical_of, near
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED, Kappa
from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale
from noisescale_core.estimators.belief import Belief

EXACT = Belief.of_interval(1000.0, 1000.0, 1000.0, 0.95)
MEASURED = Belief.of_interval(1000.0, 600.0, 1700.0, 0.95)
UNKNOWN = Belief(math.log(1000.0), 0.1, (1 / 138,) * 138)
"""As likely at a million times as much: a run that has shown no gradient at a batch of 100."""


def log_width(found):
    return math.log(found.quantile(0.975) / found.quantile(0.025))


def ends(found):
    return found.quantile(0.025), found.quantile(0.975)


@pytest.mark.parametrize(("log_mean", "log_sd"), [(0.0, 0.2), (math.log(3), 0.2), (-1.0, 0.7), (0.48, 1.3)])
def test_a_known_noise_scale_and_kappa_multiply(log_mean, log_sd):
    product = 1000 * math.exp(log_mean)

    found = critical_belief(EXACT, log_mean=log_mean, log_sd=log_sd, usual=(near(product),))

    assert found.quantile(0.5) == pytest.approx(product, rel=0.01)
    together = 1 / math.hypot(1 / log_sd, 1 / USUAL_LOG_SD)
    assert log_width(found) == pytest.approx(2 * 1.96 * together, rel=0.02)
    assert math.fsum(found.weights) == pytest.approx(1)


def test_errors_of_the_noise_scale_and_of_kappa_add_in_quadrature():
    found = critical_belief(MEASURED, log_mean=0.0, log_sd=0.4, usual=(near(1000.0),))

    own = math.log(1700 / 600) / (2 * 1.96)
    assert log_width(found) == pytest.approx(
        2 * 1.96 / math.hypot(1 / math.hypot(own, 0.4), 1 / USUAL_LOG_SD), rel=0.03
    )


@pytest.mark.parametrize("batch_size", [1.0, 1e6])
def test_what_is_usual_pulls_a_calibrated_noise_scale_by_little(batch_size):
    found = critical_belief(EXACT, log_mean=0.0, log_sd=0.25, usual=(near(batch_size),))

    assert found.quantile(0.5) == pytest.approx(1000, rel=0.08)
    assert (found.quantile(0.5) > 1000) == (batch_size > 1000)


@pytest.mark.parametrize(("batch_size", "log_sd"), [(10.0, 1.3), (1e5, 1.3), (10.0, 2.0)])
def test_what_is_usual_weighs_as_one_measurement_with_its_spread(batch_size, log_sd):
    found = critical_belief(EXACT, log_mean=0.0, log_sd=log_sd, usual=(near(batch_size),))

    share = log_sd**2 / (log_sd**2 + USUAL_LOG_SD**2)
    assert math.log(found.quantile(0.5) / 1000) == pytest.approx(share * math.log(batch_size / 1000), abs=0.02)


def test_a_noise_scale_that_nothing_bounds_asks_for_no_batch_without_bound():
    found = critical_belief(UNKNOWN, log_mean=0.0, log_sd=1.3, usual=(near(100.0),))

    assert UNKNOWN.quantile(0.5) > 1e5
    assert 100 < found.quantile(0.5) < 100 * 100
    assert found.quantile(0.975) < 100 * 10_000


@pytest.mark.parametrize("phi", [EXACT, MEASURED, UNKNOWN], ids=["exact", "measured", "unknown"])
@pytest.mark.parametrize("batch_size", [20.0, 1000.0, 1e5])
def test_the_interval_is_no_narrower_than_what_the_odds_hold_likely(phi, batch_size):
    found = critical_of(phi, log_mean=0.0, odds_log_sd=1.0, shown_log_sd=2.0, usual=(near(batch_size),))

    interval, (low, high) = found.estimate.interval, ends(found.belief)
    assert interval.value == found.belief.quantile(0.5)
    assert math.log(interval.high / interval.low) > math.log(high / low)
    assert interval.low < low


def test_where_both_spreads_are_one_the_interval_is_that_of_the_odds():
    found = critical_of(MEASURED, log_mean=0.3, odds_log_sd=0.5, shown_log_sd=0.5, usual=(near(64.0),))

    interval = found.estimate.interval
    assert (interval.low, interval.high) == pytest.approx(ends(found.belief))


def test_the_statistical_part_is_the_error_of_the_noise_scale_alone():
    found = critical_of(MEASURED, log_mean=0.3, odds_log_sd=1.3, shown_log_sd=2.0, usual=(near(1000.0),)).estimate

    assert (found.statistical.down, found.statistical.up) == pytest.approx(
        (math.log(1000 / 600), math.log(1700 / 1000)), abs=0.03
    )
    assert found.model.down > found.statistical.down


@pytest.mark.parametrize("phi", [MEASURED, UNKNOWN], ids=["measured", "unknown"])
def test_both_parts_together_are_the_interval_that_the_wider_spread_gives(phi):
    found = critical_of(phi, log_mean=0.0, odds_log_sd=1.3, shown_log_sd=2.0, usual=(near(100.0),)).estimate

    whole = critical_belief(phi, log_mean=0.0, log_sd=2.0, usual=(near(100.0),))
    assert (found.interval.low, found.interval.high) == pytest.approx(ends(whole))
    assert found.statistical.up <= found.error.up
    assert found.statistical.down <= found.error.down


@pytest.mark.parametrize("scale", [512.0, 1 / 7])
def test_counting_in_another_unit_moves_the_belief_by_that_unit(scale):
    moved = Belief(MEASURED.start + math.log(scale), MEASURED.spacing, MEASURED.weights)

    plain, other = (
        critical_belief(phi, log_mean=0.48, log_sd=1.3, usual=(near(size),))
        for phi, size in ((MEASURED, 250.0), (moved, 250.0 * scale))
    )

    assert other.start == pytest.approx(plain.start + math.log(scale))
    assert other.weights == pytest.approx(plain.weights)


@pytest.mark.parametrize(
    ("progress", "log_mean"),
    [(0.0, 0.23), (0.1, 0.23), (math.sqrt(0.25 * 0.5), -0.06), (0.25, 0.22), (None, 0.22), (0.5, -0.34), (1.0, -0.78)],
)
def test_kappa_falls_with_the_progress_of_a_run_as_its_noise_scale_rises(progress, log_mean):
    swept = Kappa(log_mean=0.2, log_sd=0.3, measurements=1, said="Calibrated here on 1 sweep.")

    assert UNCALIBRATED.log_mean_at(progress, averages_gradients=False) == pytest.approx(log_mean)
    assert UNCALIBRATED.log_mean_at(progress, averages_gradients=True) == pytest.approx(log_mean + 1.24)
    assert UNCALIBRATED.log_mean_at(progress) == pytest.approx(log_mean + 0.62)
    for averages in (False, True, None):
        assert swept.log_mean_at(progress, averages_gradients=averages) == pytest.approx(log_mean + 0.2 - 0.27)


def test_a_noise_scale_that_a_falling_learning_rate_raised_stands_for_a_smaller_critical_batch():
    here, decayed = UNCALIBRATED.log_mean_at(0.5), UNCALIBRATED.log_mean_at(0.5, relative_rate=0.1)
    assert decayed - here == pytest.approx(0.6 * math.log(0.1))

    looks = Belief.of_interval(1000.0, 900.0, 1100.0, 0.95)
    at_peak, late = (
        advised_run(steps_done=4000, planned_steps=8000, known=KnownNoiseScale(looks, share=1.0, relative_rate=rate))
        for rate in (1.0, 0.1)
    )
    ratio = Measured(KNOWN).critical(late).estimate.value / Measured(KNOWN).critical(at_peak).estimate.value
    assert ratio == pytest.approx(0.1**0.6, rel=0.05)


def test_the_progress_is_that_of_the_last_look_that_counts():
    looks = Belief.of_interval(1000.0, 900.0, 1100.0, 0.95)
    whole, half = (
        advised_run(steps_done=8000, planned_steps=8000, known=KnownNoiseScale(looks, share=share))
        for share in (1.0, 0.5)
    )
    ratio = Measured(KNOWN).critical(half).estimate.value / Measured(KNOWN).critical(whole).estimate.value
    assert ratio == pytest.approx(math.exp(0.44), rel=0.05)


def test_odds_are_of_our_tasks_and_the_interval_of_all_published_ones():
    swept, vague = (Kappa(log_mean=0.0, log_sd=sd, measurements=1, said="Calibrated here.") for sd in (0.3, 1.7))

    assert (UNCALIBRATED.odds_log_sd, UNCALIBRATED.log_sd) == pytest.approx((1.0, 2.0), abs=0.01)
    assert (swept.odds_log_sd, vague.odds_log_sd) == (0.3, 1.7)


@pytest.mark.parametrize(
    ("changes", "progress"),
    [
        ({"steps_done": 500, "planned_steps": 5000}, 0.1),
        ({"steps_done": 9000, "planned_steps": 5000}, 1.0),
        ({"steps_done": 500, "planned_steps": None}, None),
        ({"steps_done": 500, "planned_steps": 5000, "has_ended": True}, 0.1),
        ({"steps_done": 500, "planned_steps": None, "has_ended": True}, 1.0),
        ({"steps_done": 0, "planned_steps": 5000}, 0.0),
    ],
)
def test_progress_is_the_share_of_the_plan_and_without_one_whole_at_the_end(changes, progress):
    assert advised_run(**changes).progress == progress


def test_the_same_noise_scale_early_in_a_run_stands_for_a_larger_critical_batch():
    early, late = (
        Measured(KNOWN).critical(advised_run(steps_done=done, planned_steps=10_000)).estimate.value
        for done in (1000, 5000)
    )

    assert early == pytest.approx(1000, rel=0.02)
    assert early / late == pytest.approx(math.exp(0.57), rel=0.02)


def test_looks_come_before_the_window_where_both_are_known():
    run = advised_run(known=KnownNoiseScale(Belief.of_interval(4000.0, 3600.0, 4400.0, 0.95)))

    assert RESOLVED.value == 1000
    assert Measured(KNOWN).critical(run).estimate.value == pytest.approx(4000, rel=0.03)
