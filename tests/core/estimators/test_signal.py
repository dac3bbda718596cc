import math

import numpy as np
import pytest
from scipy import stats

from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.signal import Evidence, RunningSignal, has_signal, normal_deviate, octave_of, steps_of
from noisescale_core.estimators.uncertainty import Reason, State, estimate
from noisescale_core.estimators.windows import WindowSums
from simulated_runs import Setting, looks, simulated_terms

PURE_NOISE = [
    Setting(1e4, 2, "3 equal", drift="zero"),
    Setting(1e4, 32, "1000 equal", drift="zero"),
    Setting(1e4, 8, "steep", drift="zero"),
    Setting(1e4, 8, 5, examples_per_group=1, drift="zero"),
    Setting(1e4, 2, 5, examples_per_group=4, drift="zero"),
]


def octaves(values):
    """Evidence of a run with one of these |G|² a step."""
    ranges = [steps_of(octave) for octave in range(octave_of(len(values)) + 1)]
    parts = [values[low : high + 1] for low, high in ranges]
    return [Evidence(len(part), part.sum(), (part**2).sum()) for part in parts]


@pytest.mark.parametrize("freedom", [7, 15, 100, 3000])
@pytest.mark.parametrize("deviate", [-3.0, 1.0, 3.0, 4.75, 7.0])
def test_a_t_statistic_has_the_normal_deviate_of_the_same_chance(freedom, deviate):
    n = freedom + 1
    t = math.copysign(stats.t.isf(stats.norm.sf(abs(deviate)), freedom), deviate)
    mean = t / math.sqrt(n)  # of values whose sample variance is 1

    found = normal_deviate(n, n * mean, freedom + n * mean * mean)

    assert found == pytest.approx(deviate, rel=0.02)


def test_a_clear_gradient_is_a_signal_after_some_updates_and_a_weak_one_after_many():
    values = np.random.default_rng(0).normal(1.0, 0.2, size=20)
    weak = np.random.default_rng(1).normal(0.1, 1.0, size=5000)

    assert has_signal(octaves(values[:8]))
    assert not has_signal(octaves(weak[:200]))
    assert has_signal(octaves(weak))


@pytest.mark.parametrize("values", [[], [5.0] * 7, [0.0] * 20, [-3.0] * 20, [math.inf] * 20, [math.nan] * 20])
def test_too_few_no_negative_and_no_broken_values_are_a_signal(values):
    assert not has_signal(octaves(np.array(values)))


def test_equal_positive_values_are_a_signal():
    assert has_signal(octaves(np.full(8, 3.0)))


@pytest.mark.parametrize("scale", [1e-140, 1e75])
def test_a_signal_does_not_depend_on_the_unit(scale):
    values = scale * np.random.default_rng(2).normal(1.0, 1.0, size=200)

    assert has_signal(octaves(values))


def test_one_value_as_large_as_a_spike_is_no_signal():
    values = np.append(np.random.default_rng(3).normal(0.0, 1.0, size=50), 1e6)

    assert not has_signal(octaves(values))


def test_every_step_is_in_one_octave_and_each_is_twice_as_long_as_the_one_before():
    assert [steps_of(octave) for octave in range(4)] == [(0, 7), (8, 15), (16, 31), (32, 63)]
    assert all(low <= step <= high for step in range(2_000) for low, high in [steps_of(octave_of(step))])


@pytest.mark.parametrize("fall", [0.0, 1.0, 2.0])
def test_a_gradient_that_falls_by_orders_of_magnitude_is_shown_as_soon_as_one_that_stays(fall):
    """One t-statistic of the whole run would see the first steps alone."""
    steps = np.arange(400)
    values = np.random.default_rng(5).normal(0.5, 1.0, size=400) * (1.0 + steps) ** -fall

    first = next(n for n in range(8, 401) if has_signal(octaves(values[:n])))

    assert first < 200
    if fall == 2.0:
        assert not has_signal([Evidence(400, values.sum(), (values**2).sum())])


@pytest.mark.thorough
def test_a_constant_gradient_is_shown_no_later_than_by_one_t_statistic():
    seen = []
    for seed in range(30):
        values = np.random.default_rng(seed).normal(0.2, 1.0, size=2_000)
        sums = np.arange(1, 2_001), np.cumsum(values), np.cumsum(values**2)
        at_once = next(n for n, y, yy in zip(*sums, strict=True) if has_signal([Evidence(n, y, yy)]))
        by_octave = next(n for n in range(8, 2_001) if has_signal(octaves(values[:n])))
        seen.append(by_octave / at_once)

    assert np.median(seen) < 1.1


def test_octaves_with_too_few_measured_steps_count_together():
    """Every 50th step is measured: the first octaves hold one update each."""
    running = RunningSignal()
    for step in range(0, 600, 50):
        running.add(step, 3.0)

    assert running.is_shown
    assert has_signal([Evidence(1, 3.0, 9.0)] * 12)
    assert not has_signal([Evidence(1, 3.0, 9.0)] * 7)


def test_a_run_that_goes_on_says_what_its_octaves_say():
    values = np.random.default_rng(6).normal(0.15, 1.0, size=1_500)
    running, said = RunningSignal(), []
    for step, value in enumerate(values):
        running.add(step, float(value))
        said.append(running.is_shown)

    assert said == [has_signal(octaves(values[: n + 1])) for n in range(1_500)]
    assert not said[100]
    assert said[-1]


def window(values):
    return WindowSums.from_blocks((1, 100.0 + value, value) for value in values)


def test_a_bounded_window_of_a_run_without_signal_has_no_number_but_its_bound():
    rng = np.random.default_rng(4)
    lucky = window(rng.normal(1.0, 1.0, size=16))

    result = estimate(lucky, has_signal=False)

    assert estimate(lucky).state is not State.UNRESOLVED
    assert (result.state, result.reason) == (State.UNRESOLVED, Reason.NO_SIGNAL_YET)
    assert (result.value, result.high) == (None, None)
    assert result.low == estimate(lucky).low > 0
    assert result.updates_needed > 16


def test_a_window_that_is_clear_by_itself_needs_no_signal_of_its_run():
    clear = window(np.random.default_rng(5).normal(1.0, 0.05, size=16))

    assert estimate(clear, has_signal=False).value is not None


@pytest.mark.thorough
def test_products_of_noise_are_skewed_to_the_right():
    """What makes the test safe: the third moment of the |G|² estimate is not negative where G = 0."""
    for setting in PURE_NOISE:
        _, square = simulated_terms(np.random.default_rng(6), setting, runs=200, steps=500)

        third = square**3
        assert third.mean() > -3 * third.std() / math.sqrt(third.size), setting


@pytest.mark.thorough
@pytest.mark.parametrize("setting", [Setting(5, 4, "3 equal"), PURE_NOISE[0]], ids=str)
def test_the_simulation_says_what_the_product_says(setting):
    trace, square = simulated_terms(np.random.default_rng(7), setting, runs=2, steps=700)
    true_square = np.zeros(700) if setting.drift == "zero" else np.ones(700)
    simulated = list(looks(trace, square, np.full(700, setting.noise_over_batch), true_square))

    for run in range(2):
        updates = RecentUpdates()
        said = []
        for x, y in zip(trace[run], square[run], strict=True):
            updates.add(Terms(float(x), float(y)))
            said.append(updates.estimate())

        for look, found in zip(simulated, said[7:], strict=True):
            assert look.has_value[run] == (found.value is not None)
            assert look.is_resolved[run] == (found.state is State.RESOLVED)
            if found.value is not None:
                assert (look.low[run], look.high[run]) == pytest.approx((found.low, found.high))


def test_the_small_batches_of_one_step_fake_a_gradient_of_skewed_noise_that_the_steps_do_not():
    """Why the evidence within a step is left aside: few examples differ by much, and most steps hold none of them."""
    rng = np.random.default_rng(10)
    for _ in range(10):
        examples = rng.lognormal(0.0, 1.5, size=(1000, 64)) - math.exp(1.5**2 / 2)
        mean, variance = examples.mean(axis=1), examples.var(axis=1, ddof=1)

        within = stats.f.sf(64 * mean**2 / variance, 1, 63)

        assert within.min() < 1e-6
        assert not has_signal(octaves(mean**2 - variance / 64))


def test_what_is_rarer_than_the_examples_so_far_is_a_limit_of_the_steps_too():
    rng = np.random.default_rng(11)
    faked = 0
    for _ in range(20):
        examples = np.where(rng.random((16, 64)) < 0.001, 999.0, -1.0) + 0.1 * rng.normal(size=(16, 64))
        products = examples.mean(axis=1) ** 2 - examples.var(axis=1, ddof=1) / 64
        faked += any(has_signal(octaves(products[:n])) for n in range(8, 17))

    assert faked >= 8


def test_pure_noise_never_yields_a_number_in_1000_looks():
    trace, square = simulated_terms(np.random.default_rng(8), PURE_NOISE[0], runs=100, steps=1000)

    for look in looks(trace, square, np.ones(1000), np.zeros(1000)):
        assert not look.has_value.any()


@pytest.mark.slow
@pytest.mark.parametrize("setting", PURE_NOISE, ids=str)
def test_pure_noise_never_yields_a_number_in_100_runs_of_10_000_looks(setting):
    trace, square = simulated_terms(np.random.default_rng(9), setting, runs=100, steps=10_000)

    bounded = 0
    for look in looks(trace, square, np.ones(10_000), np.zeros(10_000)):
        assert not look.has_value.any()
        bounded += look.is_bounded.sum()

    assert bounded > 1000  # of a million looks: what the interval alone would have shown
