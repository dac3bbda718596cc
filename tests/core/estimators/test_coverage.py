"""Coverage of the interval on simulated gradients: at fixed steps, and at the first moment a run says "resolved"."""

import numpy as np
import pytest

from noisescale_core.estimators.uncertainty import Reason, State, estimate
from noisescale_core.estimators.windows import WindowSums
from simulated_runs import Setting, first_moments, look_at_window, simulated_terms

TRIALS = 2000

AT_FIXED_STEPS = [
    Setting(0.1, 2, "30 equal"),
    Setting(1, 2, "3 equal"),
    Setting(3, 8, "steep"),
    Setting(10, 8, "30 equal"),
    Setting(100, 32, "1000 equal"),
    Setting(1, 8, 5, examples_per_group=4),
    Setting(10, 8, 5, examples_per_group=1),
]

LOOKED_AT_EVERY_STEP = [
    (Setting(0.1, 2, "3 equal"), 1000),
    (Setting(0.1, 32, "steep"), 600),
    (Setting(1, 2, "3 equal"), 4000),
    (Setting(1, 32, "steep"), 1500),
    (Setting(5, 8, "power law"), 7000),
    (Setting(30, 8, "1000 equal"), 4000),
    (Setting(100, 32, "1000 equal"), 16_000),
    (Setting(0.3, 2, 5, examples_per_group=4), 2000),
    (Setting(3, 4, 40, examples_per_group=4), 2000),
    (Setting(10, 8, "30 equal", drift="falls as a power"), 8000),
    (Setting(10, 8, "30 equal", drift="rises"), 8000),
    (Setting(10, 8, "30 equal", drift="swings"), 8000),
    (Setting(10, 8, "30 equal", drift="jumps"), 8000),
]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("setting", AT_FIXED_STEPS, ids=str)
def test_the_set_holds_the_truth_in_about_95_percent_of_2000_windows(setting):
    """Unconditionally: bounded or not."""
    trace, square = simulated_terms(np.random.default_rng(1), setting, runs=TRIALS, steps=128)

    for steps in (8, 32, 128):
        look = look_at_window(trace[:, :steps], square[:, :steps], setting.noise_over_batch)

        # 92.5 % to 97.5 %, and a standard error of 2,000 trials
        assert 0.92 <= look.holds_truth.mean() <= 0.98, steps


@pytest.mark.parametrize("steps", [8, 128])
def test_the_simulation_of_a_window_is_that_of_the_estimator(steps):
    trace, square = simulated_terms(np.random.default_rng(2), Setting(3, 8, "power law"), runs=300, steps=steps)
    per_block = max(1, steps // 32)

    look = look_at_window(trace, square, 3.0)

    sums = [terms.reshape(300, -1, per_block).sum(2) for terms in (trace, square)]
    for run in range(300):
        blocks = ((per_block, x, y) for x, y in zip(sums[0][run], sums[1][run], strict=True))
        found = estimate(WindowSums.from_blocks(blocks))
        assert look.is_bounded[run] == (found.high is not None)
        if found.value is not None:
            assert (look.low[run], look.high[run]) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize("num_updates", [8, 32, 128])
def test_bounded_sets_are_about_as_narrow_as_with_the_true_covariance(num_updates):
    setting = Setting(1, 8, "30 equal")
    trace, square = simulated_terms(np.random.default_rng(3), setting, runs=TRIALS, steps=128)
    covariance = np.cov(trace.ravel(), square.ravel()) / num_updates
    a, c = trace[:, :num_updates].mean(1), square[:, :num_updates].mean(1)
    quadratic, half_linear = c**2 - 1.96**2 * covariance[1, 1], a * c - 1.96**2 * covariance[0, 1]
    inside = half_linear**2 - quadratic * (a**2 - 1.96**2 * covariance[0, 0])
    oracle = (2 * np.sqrt(np.maximum(inside, 0)) / quadratic)[quadratic > 0]

    look = look_at_window(trace[:, :num_updates], square[:, :num_updates], 1.0)

    widths = (look.high - look.low)[look.is_bounded]
    assert len(widths) > 0.95 * TRIALS
    # 8 blocks: t is 2.4 for the oracle's 1.96, and 1.25 would be its share
    assert np.median(widths) <= (1.3 if num_updates == 8 else 1.1) * np.median(oracle)


@pytest.mark.parametrize(
    ("setting", "steps"), [(Setting(0.3, 8, "power law"), 400), (Setting(10, 16, "1000 equal"), 600)], ids=str
)
def test_the_first_resolved_value_holds_the_truth_however_often_one_looks(setting, steps):
    (found,) = first_moments(np.random.default_rng(4), setting, runs=600, steps=steps)

    assert found.share_resolved > 0.95
    assert found.coverage >= 0.925  # 93 %, less a part of the standard error of 600 runs
    assert found.under_half <= 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "steps"), LOOKED_AT_EVERY_STEP, ids=str)
def test_the_first_resolved_value_holds_the_truth_in_every_kind_of_training(setting, steps):
    (found,) = first_moments(np.random.default_rng(5), setting, runs=1000, steps=steps, every=1 if steps < 5000 else 3)

    assert found.share_resolved > 0.95
    assert found.coverage >= 0.93 - 0.008  # one standard error of 1,000 runs
    assert found.under_half <= 0.03


def before(values, length=64):
    return WindowSums.from_blocks((1, 100.0, value) for value in values[:length])


def test_a_window_is_resolved_by_what_the_windows_before_it_show():
    rng = np.random.default_rng(6)
    lucky = WindowSums.from_blocks((1, 100 + x, y) for x, y in rng.normal([0, 1], [5, 0.5], size=(16, 2)))
    weak, strong = rng.normal(0.5, 1.0, size=64), rng.normal(1.0, 0.5, size=64)

    assert estimate(lucky).state is State.RESOLVED
    assert estimate(lucky, before=before(strong)).state is State.RESOLVED
    found = estimate(lucky, before=before(weak))
    assert found.state is State.TENTATIVE
    assert found.updates_needed > 16
    assert estimate(lucky, before=before(strong, 15)).state is State.TENTATIVE
    assert estimate(lucky, before=WindowSums()).state is State.TENTATIVE


def test_a_spike_before_a_window_that_is_clear_by_itself_does_not_hide_it():
    rng = np.random.default_rng(7)
    clear = WindowSums.from_blocks((1, 100 + x, y) for x, y in rng.normal([0, 1], [5, 0.05], size=(16, 2)))
    spike = np.append(rng.normal(1.0, 0.05, size=63), 1e6)

    assert estimate(clear, before=before(spike)).state is State.RESOLVED


def test_a_window_whose_own_gradient_is_weak_is_not_resolved_by_those_before_it():
    rng = np.random.default_rng(8)
    weak = WindowSums.from_blocks((1, 100 + x, y) for x, y in rng.normal([0, 0.7], [5, 1.0], size=(16, 2)))

    found = estimate(weak, before=before(rng.normal(1.0, 0.2, size=64)))

    assert found.state is not State.RESOLVED
    assert found.updates_needed is not None
    assert found.reason in (None, Reason.INTERVAL_UNBOUNDED)
