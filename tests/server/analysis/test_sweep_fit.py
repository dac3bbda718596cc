"""The fit of a sweep against planted truth: exact data, coverage, one-sided profiles, refusals."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import Finding
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint, sweep_point
from synthetic_sweeps import CRITICAL_BATCH, MIN_STEPS, Setting, exact_sweep, shares

SIZES = (16, 64, 256, 1024, 4096)


def curve(batch_size: float) -> float:
    return MIN_STEPS * (1 + CRITICAL_BATCH / batch_size)


def fitted(points, **options) -> SweepFit:
    outcome = fit_sweep(points, **options)
    assert isinstance(outcome, SweepFit), outcome
    return outcome


def refused(points, **options) -> Refusal:
    outcome = fit_sweep(points, **options)
    assert isinstance(outcome, Refusal), outcome
    return outcome


def noisy(seed: int = 0, **changes) -> list[SweepPoint]:
    return Setting(**changes).sweep(np.random.default_rng(seed))


def test_steps_without_noise_give_back_the_curve_they_lie_on():
    fit = fitted(exact_sweep(SIZES, curve))

    assert fit.critical_batch.value == pytest.approx(CRITICAL_BATCH, rel=1e-6)
    assert fit.min_steps.value == pytest.approx(MIN_STEPS, rel=1e-6)
    assert fit.min_examples.value == pytest.approx(MIN_STEPS * CRITICAL_BATCH, rel=1e-6)
    assert fit.rms < 1e-6


def test_order_of_the_points_and_the_unit_of_the_batch_change_nothing_else():
    points = noisy()
    in_tokens = [SweepPoint(2048 * point.batch_size, point.repeats) for point in reversed(points)]

    fit, other = fitted(points), fitted(in_tokens)

    assert other.critical_batch.value == pytest.approx(2048 * fit.critical_batch.value, rel=1e-6)
    assert other.critical_batch.low == pytest.approx(2048 * fit.critical_batch.low, rel=1e-6)
    assert other.min_steps.high == pytest.approx(fit.min_steps.high, rel=1e-4)


def test_small_errors_have_the_covariance_of_a_straight_line():
    fit = fitted(noisy(scatter=(0.005, 0.005), repeats=20))
    quantile = 1.973  # Student's t at 178 degrees of freedom

    half = math.log(fit.critical_batch.high / fit.critical_batch.low) / 2
    half_steps = math.log(fit.min_steps.high / fit.min_steps.low) / 2
    half_examples = math.log(fit.min_examples.high / fit.min_examples.low) / 2

    assert half == pytest.approx(quantile * math.sqrt(fit.covariance.critical_batch), rel=0.02)
    assert half_steps == pytest.approx(quantile * math.sqrt(fit.covariance.min_steps), rel=0.02)
    assert half_examples == pytest.approx(quantile * math.sqrt(fit.covariance.min_examples), rel=0.02)


@pytest.mark.thorough
def test_intervals_hold_the_planted_truth_in_95_of_100_sweeps():
    """Of each kind of sweep in a thousand, below."""
    found = shares(Setting(), sweeps=100, seed=1)

    for share in (found.min_steps, found.min_examples, found.critical_batch):
        assert 0.95 - 5 * math.sqrt(0.95 * 0.05 / 100) <= share <= 1


@pytest.mark.slow
def test_intervals_hold_the_planted_truth_where_runs_ended_before_the_target():
    found = shares(Setting(num_batch_sizes=7, repeats=2, budget=6000), sweeps=12, seed=2)

    assert min(found.min_steps, found.min_examples, found.critical_batch) >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        Setting(),
        Setting(repeats=1),
        Setting(octaves=(-2, 0), num_batch_sizes=4),
        Setting(repeats=3, tuning=0.05),
        Setting(scatter=(0.02, 0.15)),
    ],
    ids=["repeats", "single runs", "only below critical", "noise of tuning", "unequal noise"],
)
def test_coverage_over_250_sweeps_is_within_three_standard_errors_of_95(setting):
    """Over thousands in benchmark_fits.py."""
    found = shares(setting, sweeps=250, seed=3)

    for share in (found.min_steps, found.min_examples, found.critical_batch):
        assert abs(share - 0.95) <= 3 * math.sqrt(0.95 * 0.05 / 250)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("repeats", [1, 3])
def test_coverage_over_120_sweeps_with_censored_points_is_within_three_standard_errors_of_95(repeats):
    """Each takes a third of a second; over a thousand in benchmark_fits.py."""
    found = shares(Setting(budget=6000, repeats=repeats), sweeps=120, seed=4)

    for share in (found.min_steps, found.min_examples, found.critical_batch):
        assert abs(share - 0.95) <= 3 * math.sqrt(0.95 * 0.05 / 120)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting(exponent=0.7), marks=pytest.mark.slow),
        pytest.param(Setting(exponent=1.4), marks=pytest.mark.slow),
        Setting(scatter=(0.02, 0.2)),
    ],
    ids=["ν = 0.7", "ν = 1.4", "unequal noise"],
)
def test_lack_of_fit_is_found_in_8_of_10_sweeps_that_are_not_as_assumed(setting):
    assert shares(setting, sweeps=60, seed=5).lack_of_fit >= 0.8


@pytest.mark.slow
def test_lack_of_fit_is_seldom_found_where_all_is_as_assumed():
    assert shares(Setting(), sweeps=300, seed=6).lack_of_fit <= 0.07 + 5 * math.sqrt(0.07 * 0.93 / 300)


def test_the_exponent_of_another_curve_is_found():
    estimate = fitted(noisy(exponent=0.7, scatter=(0.01, 0.01))).lack_of_fit.exponent

    assert estimate.value == pytest.approx(0.7, rel=0.05)
    assert estimate.high < 1


def test_a_best_learning_rate_at_the_edge_of_its_grid_is_a_finding():
    points = noisy()
    points[2] = SweepPoint(points[2].batch_size, points[2].repeats, is_at_grid_edge=True)

    lack = fitted(points).lack_of_fit

    assert Finding.GRID_EDGE in lack.findings
    assert lack.grid_edge_batch_sizes == (points[2].batch_size,)


def test_a_target_reached_in_a_few_steps_is_a_finding():
    fit = fitted(exact_sweep(SIZES, lambda size: curve(size) / 300))

    assert Finding.FEW_STEPS in fit.lack_of_fit.findings


def test_noise_of_tuning_makes_whole_batch_sizes_the_unit_of_noise():
    fit = fitted(noisy(tuning=0.05, seed=1))

    assert fit.noise_level is NoiseLevel.BATCH_SIZES
    assert Finding.MISFIT in fit.lack_of_fit.findings
    assert fit.freedom == 7


def test_batch_sizes_far_below_critical_give_a_lower_bound_and_the_examples():
    refusal = refused(noisy(octaves=(-9, -6), num_batch_sizes=5))

    assert refusal.reason is RefusalReason.ALL_BELOW
    assert refusal.critical_batch.low < CRITICAL_BATCH
    assert refusal.critical_batch.high is None
    assert refusal.min_steps.low is None
    assert refusal.min_examples.low < MIN_STEPS * CRITICAL_BATCH < refusal.min_examples.high * 1.05


def test_batch_sizes_far_above_critical_give_an_upper_bound_and_the_steps():
    refusal = refused(noisy(octaves=(6, 9), num_batch_sizes=5))

    assert refusal.reason is RefusalReason.ALL_ABOVE
    assert refusal.critical_batch.low is None
    assert refusal.critical_batch.high < 2**7 * CRITICAL_BATCH
    assert refusal.min_steps.low < MIN_STEPS * 1.02
    assert refusal.min_steps.high > MIN_STEPS * 0.98
    assert refusal.min_examples.low is None


def test_pure_noise_determines_nothing():
    rng = np.random.default_rng(7)

    refusal = refused(exact_sweep((32, 64, 128), lambda size: 1e3 * size**-0.5 * math.exp(rng.standard_normal())))

    assert refusal.reason is RefusalReason.UNDETERMINED
    assert refusal.critical_batch.low is None
    assert refusal.critical_batch.high is None


def test_steps_that_rise_with_the_batch_size_are_refused():
    refusal = refused(exact_sweep(SIZES, lambda size: 100 * size**0.2))

    assert refusal.reason is RefusalReason.STEPS_RISE
    assert "0.20" in refusal.explanation


def test_examples_that_fall_with_the_batch_size_are_refused():
    refusal = refused(exact_sweep(SIZES, lambda size: 1e6 * size**-1.3))

    assert refusal.reason is RefusalReason.EXAMPLES_FALL


def test_a_curve_far_from_what_repeats_say_is_refused():
    points = noisy(tuning=0.4, seed=3)

    refusal = refused(points)

    assert refusal.reason is RefusalReason.MISFIT
    assert "repeats of one batch size differ by 5%" in refusal.explanation


def test_a_batch_size_whose_repeats_disagree_is_named():
    points = noisy()
    points[4] = SweepPoint(points[4].batch_size, Repeats.from_steps([2000, 2050, 60000]))

    refusal = refused(points)

    assert refusal.reason is RefusalReason.REPEATS_DISAGREE
    assert "batch size 256" in refusal.explanation


def test_targets_that_were_met_at_the_first_look_say_nothing():
    points = [SweepPoint(size, None, ((0.0, 1.0),)) for size in (64.0, 256.0, 1024.0)]

    refusal = refused(points)

    assert refusal.reason is RefusalReason.TOO_FEW_BATCH_SIZES
    assert "evaluate earlier" in refusal.explanation


def test_two_batch_sizes_are_too_few():
    refusal = refused(exact_sweep((16, 256), curve))

    assert refusal.reason is RefusalReason.TOO_FEW_BATCH_SIZES


def test_a_batch_size_that_is_there_twice_is_an_error():
    with pytest.raises(AnalysisError, match="batch_size 16 is there more than once"):
        fit_sweep(exact_sweep((16, 16, 64), curve))


def test_a_bound_that_could_not_be_lower_pulls_the_curve_up():
    points = exact_sweep((64, 128, 256, 512, 1024), lambda size: curve(size) * (1.02 if size in (128, 512) else 0.98))
    bound = sweep_point(16, [StepsToTarget.beyond(1.5 * curve(16))])

    without, with_bound = fitted(points), fitted([bound, *points])

    assert with_bound.critical_batch.value > without.critical_batch.value


def test_a_bound_far_below_the_curve_says_nothing():
    points = noisy(repeats=1)
    bound = sweep_point(8, [StepsToTarget.beyond(10)])

    without, with_bound = fitted(points), fitted([bound, *points])

    assert with_bound.critical_batch.value == pytest.approx(without.critical_batch.value, rel=1e-3)
    assert with_bound.critical_batch.high == pytest.approx(without.critical_batch.high, rel=1e-2)


def test_evaluations_far_apart_give_intervals_that_hold_the_truth():
    fit = fitted(noisy(spacing=1.3, repeats=1))

    assert fit.critical_batch.holds(CRITICAL_BATCH)
    assert fit.min_steps.holds(MIN_STEPS)


def test_a_robust_fit_is_moved_less_by_an_outlier():
    points = exact_sweep(SIZES, lambda size: curve(size) * (1.01 if size in (64, 1024) else 0.99))
    outlier = SweepPoint(2048, Repeats.from_steps([2.2 * curve(2048)]))

    robust, plain = fitted([*points, outlier], is_robust=True), fitted([*points, outlier])

    assert abs(math.log(robust.critical_batch.value / CRITICAL_BATCH)) < 0.1
    assert abs(math.log(plain.critical_batch.value / CRITICAL_BATCH)) > 0.2


def test_a_robust_fit_says_that_it_needs_known_steps():
    points = [*exact_sweep(SIZES, curve), sweep_point(8, [StepsToTarget.beyond(100)])]

    with pytest.raises(AnalysisError, match="leave out censored runs"):
        fit_sweep(points, is_robust=True)
