import math

import numpy as np
import pytest
from scipy import stats

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import MeansOfTerms, Reason, State, estimate, fieller, means_of_terms
from noisescale_core.estimators.windows import WindowSums


def window(x, y, n=None):
    n = np.ones(len(x)) if n is None else n
    return WindowSums.from_blocks(zip(n, x, y, strict=True))


def noisy_terms(rng, *, steps, trace_cov=100.0, grad_sq_norm=1.0, sd_trace=10.0, sd_grad=1.0, corr=-0.3):
    cov = [[sd_trace**2, corr * sd_trace * sd_grad], [corr * sd_trace * sd_grad, sd_grad**2]]
    return rng.multivariate_normal([trace_cov, grad_sq_norm], cov, size=steps).T


@pytest.mark.parametrize("df", [1, 2, 3, 7, 15, 39, 99, 100, 150, 5000])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.95, 0.975, 0.995, 0.9999])
def test_t_quantile_agrees_with_scipy(df, probability):
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-8, abs=1e-9)


def test_t_quantile_refuses_what_it_cannot_answer():
    with pytest.raises(ValueError, match=r"got 1\.5 and 3"):
        t_quantile(1.5, 3)


def test_equal_blocks_give_the_sample_covariance_of_block_means():
    rng = np.random.default_rng(1)
    x, y = noisy_terms(rng, steps=40)

    means = means_of_terms(window(x, y))

    expected = np.cov(x, y) / 40
    assert means.a == pytest.approx(x.mean())
    assert means.c == pytest.approx(y.mean())
    assert [means.v_aa, means.v_ac, means.v_cc] == pytest.approx([expected[0, 0], expected[0, 1], expected[1, 1]])


def test_unequal_blocks_are_weighted_by_their_updates():
    n = np.array([1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 3.0])
    x_mean = np.array([5.0, 6.0, 7.0, 8.0, 7.5, 7.2, 6.8, 6.0])
    y_mean = x_mean / 10

    means = means_of_terms(window(n * x_mean, n * y_mean, n))

    weights = n / n.sum()
    a = (weights * x_mean).sum()
    assert means.a == pytest.approx(a)
    assert means.v_aa == pytest.approx(8 / 7 * (weights**2 * (x_mean - a) ** 2).sum())
    assert means.v_ac == pytest.approx(means.v_aa / 10)


def test_one_block_has_no_spread():
    with pytest.raises(EstimationError, match="at least 2"):
        means_of_terms(window([1.0], [1.0]))


@pytest.mark.parametrize("c", [3.0, 1.0, 0.3, -0.5, -3.0])
def test_fieller_ends_are_where_the_t_test_stops_rejecting(c):
    means = MeansOfTerms(a=50.0, c=c, v_aa=9.0, v_ac=-0.4, v_cc=0.25)
    grid = np.geomspace(1e-2, 1e6, 400_001)
    rejected = np.abs(means.a - grid * c) > 2.0 * np.sqrt(means.v_aa - 2 * grid * means.v_ac + grid**2 * means.v_cc)

    low, high = fieller(means, 2.0)

    inside = grid[~rejected]
    if inside.size == 0:
        assert (low, high) == (None, None)
    else:
        assert low == pytest.approx(inside[0], rel=1e-3)
        assert (high is None) == (inside[-1] == grid[-1])
        if high is not None:
            assert high == pytest.approx(inside[-1], rel=1e-3)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("steps", [8, 32, 128])
@pytest.mark.parametrize("sd_grad", [0.5, 3.0, 12.0])
def test_the_set_covers_the_truth_in_95_percent_of_trials_bounded_or_not(steps, sd_grad):
    rng = np.random.default_rng(steps)
    trials, truth = 1500, 100.0

    covered = 0
    for _ in range(trials):
        result = estimate(window(*noisy_terms(rng, steps=steps, sd_grad=sd_grad)))
        covered += (result.low is None or result.low <= truth) and (result.high is None or result.high >= truth)

    assert 0.935 <= covered / trials <= 1.0


def test_a_clear_signal_is_resolved_and_its_value_is_a_ratio_of_sums():
    x, y = noisy_terms(np.random.default_rng(2), steps=64, sd_grad=0.5)

    result = estimate(window(x, y))

    assert result.state is State.RESOLVED
    assert result.value == pytest.approx(x.sum() / y.sum())
    assert result.low < result.value < result.high
    assert result.z == pytest.approx(y.mean() / (y.std(ddof=1) / 8), rel=1e-9)
    assert result.reason is None
    assert result.updates_needed is None


def test_a_bounded_interval_below_z_5_is_tentative_and_says_how_many_updates_it_needs():
    x, y = noisy_terms(np.random.default_rng(3), steps=64, sd_grad=2.2)

    result = estimate(window(x, y))

    assert result.state is State.TENTATIVE
    assert 2 < result.z < 5
    assert result.updates_needed == math.ceil(64 * (5 / result.z) ** 2)


@pytest.mark.parametrize("signal", [1e-9, 1e-150, 1e-300])
def test_a_signal_too_small_for_any_run_promises_no_number_of_updates(signal):
    spread = window([100.0] * 8, [1.0, -1.0] * 4, n=[1.0] * 8)

    result = estimate(spread._replace(grad_sq_norm=signal, weighted_grad_sq_norm=signal))

    assert 0 < result.z < 1e-8
    assert result.updates_needed is None


def test_an_unbounded_interval_gives_a_lower_bound_and_no_number():
    x, y = noisy_terms(np.random.default_rng(4), steps=32, sd_grad=12.0, grad_sq_norm=3.0)

    result = estimate(window(x, y))

    assert result.state is State.UNRESOLVED
    assert result.reason is Reason.INTERVAL_UNBOUNDED
    assert result.value is None
    assert result.high is None
    assert 0 < result.low < 100


def test_a_negative_signal_estimate_gives_a_lower_bound_never_a_negative_number():
    rng = np.random.default_rng(5)
    x, y = noisy_terms(rng, steps=16, grad_sq_norm=-0.1, sd_grad=1.0)

    result = estimate(window(x, y - y.mean() - 0.1))

    assert result.reason is Reason.GRAD_SQ_NORM_NOT_POSITIVE
    assert result.value is None
    assert result.low > 0
    assert result.updates_needed is None


def test_a_negative_noise_estimate_is_named_because_it_points_to_a_bug():
    x, y = noisy_terms(np.random.default_rng(6), steps=16, trace_cov=-50.0, sd_grad=0.1)

    result = estimate(window(x, y))

    assert result.state is State.UNRESOLVED
    assert result.reason is Reason.TRACE_COV_NOT_POSITIVE
    assert (result.value, result.high) == (None, None)


@pytest.mark.parametrize("size", [4.9e-19, 1e-12, 1e-10])
def test_noise_of_the_size_of_rounding_is_no_number(size):
    x, y = noisy_terms(np.random.default_rng(7), steps=64, trace_cov=size, sd_trace=0.1 * size, sd_grad=0.05)

    result = estimate(window(x, y))

    assert result.state is State.UNRESOLVED
    assert result.reason is Reason.TRACE_COV_OF_ROUNDING
    assert (result.value, result.low, result.high) == (None, None, None)


def test_a_noise_scale_of_a_hundred_millionth_of_an_example_is_a_number():
    x, y = noisy_terms(np.random.default_rng(7), steps=64, trace_cov=1e-8, sd_trace=1e-9, sd_grad=0.05)

    assert estimate(window(x, y)).value == pytest.approx(1e-8, rel=0.2)


@pytest.mark.parametrize(("blocks", "reason"), [(0, Reason.NO_ESTIMATES), (7, Reason.TOO_FEW_UPDATES)])
def test_fewer_than_eight_blocks_are_unresolved(blocks, reason):
    result = estimate(window(np.full(blocks, 10.0), np.ones(blocks)))

    assert result.state is State.UNRESOLVED
    assert result.reason is reason


def test_pure_noise_seldom_passes_and_never_resolves():
    rng = np.random.default_rng(7)

    states = [estimate(window(*noisy_terms(rng, steps=32, grad_sq_norm=0.0))).state for _ in range(2000)]

    assert State.RESOLVED not in states
    assert states.count(State.TENTATIVE) / 2000 < 0.04


def test_moments_of_single_updates_are_blocks_of_one_update():
    x, y = noisy_terms(np.random.default_rng(8), steps=20)

    moments = WindowSums.from_moments(
        num_updates=20,
        trace_cov=x.sum(),
        grad_sq_norm=y.sum(),
        trace_cov_sq=(x**2).sum(),
        grad_sq_norm_sq=(y**2).sum(),
        cross=(x * y).sum(),
    )

    assert estimate(moments).low == pytest.approx(estimate(window(x, y)).low)


def test_sums_of_two_windows_add():
    x, y = noisy_terms(np.random.default_rng(9), steps=20)

    assert estimate(window(x[:9], y[:9]) + window(x[9:], y[9:])).value == pytest.approx(estimate(window(x, y)).value)
