"""B_crit of a task's next run, from sweeps and from runs of the task."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.calibration.calibration import UNCALIBRATED, Kappa
from noisescale_server.analysis.calibration.measurement import TypicalNoiseScale
from noisescale_server.analysis.calibration.task import BETWEEN_SWEEPS, next_critical_batch
from noisescale_server.analysis.estimate import Bounds, Estimate

Z = 1.959964
SCALE = TypicalNoiseScale(200.0, error=0.1, num_runs=1, squares=0.0, run_error=0.1)
CALIBRATED = Kappa(math.log(2), 0.3, 2, "")


def sweep(value: float, log_sd: float = 0.1) -> Estimate:
    return Estimate(value, value * math.exp(-Z * log_sd), value * math.exp(Z * log_sd), 0.95)


def test_without_a_sweep_it_is_kappa_times_the_noise_scale_with_both_errors() -> None:
    found = next_critical_batch([], SCALE, kappa=CALIBRATED, kappa_of_others=UNCALIBRATED)

    assert found is not None
    assert found.value == pytest.approx(400.0)
    assert found.high / found.value == pytest.approx(math.exp(Z * math.hypot(0.3, 0.1)), rel=1e-4)


def test_a_sweep_of_the_task_decides_and_kappa_of_the_same_sweep_does_not_count_twice() -> None:
    found = next_critical_batch([sweep(1000.0)], SCALE, kappa=CALIBRATED, kappa_of_others=UNCALIBRATED)
    narrow = Kappa(math.log(2), 0.01, 9, "")
    same = next_critical_batch([sweep(1000.0)], SCALE, kappa=narrow, kappa_of_others=UNCALIBRATED)

    assert found == same
    assert found is not None
    assert found.value == pytest.approx(1000.0, rel=0.1)
    assert found.low < 1000.0 < found.high < 6 * found.low


def test_sweeps_with_curves_alone_are_enough() -> None:
    found = next_critical_batch([sweep(900.0), sweep(1100.0)], None, kappa=UNCALIBRATED, kappa_of_others=UNCALIBRATED)

    assert found is not None
    assert found.value == pytest.approx(1000.0, rel=0.05)


def test_a_bound_moves_what_the_runs_say_and_says_nothing_alone() -> None:
    bound = Bounds(2000.0, None, 0.95)

    moved = next_critical_batch([bound], SCALE, kappa=UNCALIBRATED, kappa_of_others=UNCALIBRATED)
    alone = next_critical_batch([bound], None, kappa=UNCALIBRATED, kappa_of_others=UNCALIBRATED)

    assert moved is not None
    assert moved.value > 1500.0
    assert alone is None


def test_runs_that_differ_widen_what_they_say() -> None:
    scattered = TypicalNoiseScale(200.0, error=0.1, num_runs=2, squares=2.0, run_error=0.1)

    one, two = (
        next_critical_batch([], scale, kappa=CALIBRATED, kappa_of_others=UNCALIBRATED) for scale in (SCALE, scattered)
    )

    assert one is not None
    assert two is not None
    assert two.high / two.low > 3 * one.high / one.low


@pytest.mark.thorough
def test_its_interval_holds_the_next_training_in_95_of_100() -> None:
    rng = np.random.default_rng(7)
    hits, trials = 0, 200
    for _ in range(trials):
        task = rng.normal(6.0, 2.0)
        spread = BETWEEN_SWEEPS.median * math.exp(BETWEEN_SWEEPS.log_sd * rng.standard_normal())
        sweeps = [sweep(math.exp(rng.normal(task, math.hypot(spread, 0.15))), 0.15) for _ in range(2)]
        found = next_critical_batch(sweeps, None, kappa=UNCALIBRATED, kappa_of_others=UNCALIBRATED)
        assert found is not None
        hits += found.low < math.exp(rng.normal(task, spread)) < found.high

    assert abs(hits / trials - 0.95) < 5 * math.sqrt(0.95 * 0.05 / trials)
