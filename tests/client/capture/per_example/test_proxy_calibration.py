"""The ratio that turns a proxy into the model's noise scale: its truth, its coverage, and when it is none."""

import random

import pytest

from noisescale.capture.per_example.proxy_calibration import (
    CalibrationState,
    ProxySums,
    calibrate,
)
from noisescale_core.estimators.noise_scale import Terms

PROXY = Terms(trace_cov=3.0, grad_sq_norm=0.05)
FULL = Terms(trace_cov=400.0, grad_sq_norm=5.0)
RATIO = (400 / 5) / (3 / 0.05)


def simulated(num_pairs, *, noise, seed, common=0.0, proxy=PROXY, full=FULL):
    """Steps whose four terms have noise of their own, and some that they share, as terms of one step do."""
    rng = random.Random(seed)
    sums = ProxySums()
    for _ in range(num_pairs):
        shared = common * rng.gauss(0, 1)
        noisy = [
            value * (1 + shared + rng.gauss(0, noise))
            for value in (proxy.trace_cov, proxy.grad_sq_norm, full.trace_cov, full.grad_sq_norm)
        ]
        sums = sums + ProxySums.from_pair(proxy=Terms(*noisy[:2]), full=Terms(*noisy[2:]))
    return sums


def test_exact_terms_give_the_exact_ratio():
    calibration = calibrate(simulated(8, noise=0, seed=0))

    assert calibration.state is CalibrationState.CALIBRATED
    assert calibration.ratio == pytest.approx(RATIO, rel=1e-12)
    assert calibration.low == pytest.approx(RATIO, rel=1e-6)
    assert calibration.high == pytest.approx(RATIO, rel=1e-6)


@pytest.mark.parametrize("noisy", range(4), ids=["proxy trace", "proxy grad", "full trace", "full grad"])
def test_the_interval_holds_the_true_ratio_as_often_as_it_says_whichever_term_is_noisy(noisy):
    """Within 5 standard errors of 95 %: 400 trials have one of 1.1 %."""
    rng = random.Random(noisy)
    exact = (PROXY.trace_cov, PROXY.grad_sq_norm, FULL.trace_cov, FULL.grad_sq_norm)

    held = 0
    for _ in range(400):
        sums = ProxySums()
        for _ in range(16):
            terms = [v * (1 + 0.3 * rng.gauss(0, 1) * (place == noisy)) for place, v in enumerate(exact)]
            sums = sums + ProxySums.from_pair(proxy=Terms(*terms[:2]), full=Terms(*terms[2:]))
        calibration = calibrate(sums)
        held += calibration.low is not None and calibration.low <= RATIO <= calibration.high

    assert abs(held / 400 - 0.95) < 5 * 0.011


def test_noise_that_all_terms_of_a_step_share_cancels():
    alone, shared = calibrate(simulated(32, noise=0.1, seed=3)), calibrate(simulated(32, noise=0.1, seed=3, common=0.3))

    assert shared.high - shared.low < 1.2 * (alone.high - alone.low)
    assert shared.low <= RATIO <= shared.high


def test_sums_of_two_stretches_add_up_to_those_of_both():
    first, second = simulated(9, noise=0.3, seed=1), simulated(11, noise=0.3, seed=2)

    both = first + second

    assert both.num_pairs == 20
    assert both.sums[0] == pytest.approx(first.sums[0] + second.sums[0])
    assert both.products[6] == pytest.approx(first.products[6] + second.products[6])


def test_too_few_pairs_are_uncalibrated():
    calibration = calibrate(simulated(7, noise=0.1, seed=0))

    assert calibration.state is CalibrationState.UNCALIBRATED
    assert (calibration.ratio, calibration.low, calibration.high) == (None, None, None)
    assert calibration.num_pairs == 7


@pytest.mark.parametrize("unresolved", ["proxy", "full"])
def test_terms_that_are_mostly_noise_are_uncalibrated(unresolved):
    """|G|² of one of the two is lost in noise: the ratio could be anything."""
    rng = random.Random(5)
    sums = ProxySums()
    for _ in range(32):
        noisy = Terms(trace_cov=10 + rng.gauss(0, 1), grad_sq_norm=0.05 + rng.gauss(0, 1))
        clear = Terms(trace_cov=10 + rng.gauss(0, 1), grad_sq_norm=1 + rng.gauss(0, 0.1))
        proxy, full = (noisy, clear) if unresolved == "proxy" else (clear, noisy)
        sums = sums + ProxySums.from_pair(proxy=proxy, full=full)

    assert calibrate(sums).state is CalibrationState.UNCALIBRATED


def test_negative_terms_are_uncalibrated():
    sums = simulated(16, noise=0.01, seed=0, full=Terms(trace_cov=-1.0, grad_sq_norm=1.0))

    assert calibrate(sums).state is CalibrationState.UNCALIBRATED
