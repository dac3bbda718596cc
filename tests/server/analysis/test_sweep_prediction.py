"""Predictions from a fitted sweep, and the regimes of its points."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.batch_sweep.prediction import predict
from noisescale_server.analysis.sweeps.batch_sweep.regimes import Regime, local_slopes
from synthetic_sweeps import CRITICAL_BATCH, MIN_STEPS, Setting


def test_at_the_critical_batch_steps_and_examples_are_twice_their_minimum():
    fit = fit_sweep(Setting().sweep(np.random.default_rng(0)))

    found = predict(fit, fit.critical_batch.value)

    assert found.steps.value == pytest.approx(2 * fit.min_steps.value)
    assert found.examples.value == pytest.approx(2 * fit.min_examples.value)
    assert found.steps.low < found.steps.value < found.steps.high
    assert not found.is_extrapolated


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [60, 200])
def test_the_band_of_one_run_holds_one_more_run_and_that_of_the_curve_the_curve_in_95_of_100_sweeps(sweeps):
    rng = np.random.default_rng(1)
    setting, batch_size = Setting(repeats=2), 3000.0
    truth = MIN_STEPS * (1 + CRITICAL_BATCH / batch_size)

    found = [predict(fit_sweep(setting.sweep(rng)), batch_size) for _ in range(sweeps)]
    runs = truth * np.exp(0.05 * rng.standard_normal(sweeps))

    error = 5 * math.sqrt(0.95 * 0.05 / sweeps)
    curve = np.mean([item.steps.holds(truth) for item in found])
    one = np.mean([item.steps_of_one_run.holds(run) for item, run in zip(found, runs, strict=True)])
    assert abs(curve - 0.95) <= error
    assert abs(one - 0.95) <= error


def test_a_batch_size_outside_the_sweep_is_marked_and_less_certain():
    fit = fit_sweep(Setting(octaves=(-4, 0)).sweep(np.random.default_rng(2)))

    inside, outside = predict(fit, CRITICAL_BATCH / 4), predict(fit, 64 * CRITICAL_BATCH)

    assert outside.is_extrapolated
    width_outside = math.log(outside.steps.high / outside.steps.low)
    assert width_outside > 3 * math.log(inside.steps.high / inside.steps.low)


@pytest.mark.parametrize("batch_size", [0.0, -1.0, math.inf])
def test_a_batch_size_that_is_none_is_an_error(batch_size):
    with pytest.raises(AnalysisError, match="batch_size must be positive"):
        predict(fit_sweep(Setting().sweep(np.random.default_rng(3))), batch_size)


def test_a_sweep_passes_through_the_three_regimes():
    sizes = [CRITICAL_BATCH * factor for factor in (1 / 64, 1 / 32, 1, 2, 32, 64)]

    slopes = local_slopes([(size, MIN_STEPS * (1 + CRITICAL_BATCH / size)) for size in sizes])

    assert [slopes[0].regime, slopes[2].regime, slopes[4].regime] == list(Regime)
    assert slopes[2].slope == pytest.approx(math.log2(1.5 / 2))


def test_limits_of_regimes_in_the_wrong_order_are_an_error():
    with pytest.raises(AnalysisError, match="perfect must be below maximal"):
        local_slopes([], perfect=-0.1, maximal=-0.9)
