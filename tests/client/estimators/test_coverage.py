"""Coverage of the interval on simulated gradients: the whole way from micro-batch gradients to the Fieller set."""

import numpy as np
import pytest

from noisescale.estimators.noise_scale import from_groups
from noisescale.estimators.uncertainty import estimate
from noisescale.estimators.windows import WindowSums

DIM = 60
GROUPS = 8
BATCH = 64
TRIALS = 2000


def simulated_terms(rng, *, steps, noise_scale):
    """(tr Σ, |G|²) estimates of each step, [TRIALS, steps] each, for a power-law spectrum of Σ."""
    spectrum = 1 / np.arange(1, DIM + 1)
    spectrum *= noise_scale / spectrum.sum()  # tr Σ = noise scale, as |G|² = 1
    mean = np.full(DIM, DIM**-0.5)
    scale = np.sqrt(spectrum / (BATCH / GROUPS))
    small = np.empty((TRIALS, steps))
    big = np.empty((TRIALS, steps))
    for step in range(steps):
        groups = mean + scale * rng.normal(size=(TRIALS, GROUPS, DIM))
        small[:, step] = (groups**2).sum(2).mean(1)
        big[:, step] = (groups.mean(1) ** 2).sum(1)
    terms = from_groups(mean_small_sq_norm=small, big_sq_norm=big, num_groups=GROUPS, batch_size=BATCH)
    return terms.trace_cov, terms.grad_sq_norm


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [30.0, 300.0, 3000.0])
@pytest.mark.parametrize("steps", [8, 32, 128])
def test_the_set_holds_the_truth_in_about_95_percent_of_2000_windows(steps, noise_scale):
    rng = np.random.default_rng([steps, int(noise_scale)])
    trace_cov, grad_sq_norm = simulated_terms(rng, steps=steps, noise_scale=noise_scale)

    held = 0
    for x, y in zip(trace_cov, grad_sq_norm, strict=True):
        result = estimate(WindowSums.from_blocks((1, *terms) for terms in zip(x, y, strict=True)))
        held += (result.low is None or result.low <= noise_scale) and (
            result.high is None or noise_scale <= result.high
        )

    # 95 % ± 4 standard errors of 2,000 trials, and a little for the skew of |G|² at 8 steps
    assert 0.925 <= held / TRIALS <= 0.985
