"""Whether small batches are weighted by size, told from their squared norms."""

import math
import random

import pytest

from noisescale_core.estimators.size_weighting import MIN_STEPS, SizeWeighting, size_slope, slope_of_sums

RAGGED = (8, 8, 8, 6)


def evidence(*, weight, noise_scale, num_steps, sizes=RAGGED, dimensions=60, seed=0):
    """Gaussian gradients of |G|² = 1 and tr Σ = noise_scale, weighted by a function of the size."""
    draw = random.Random(seed)
    found = SizeWeighting()
    for _ in range(num_steps):
        sq_norms = []
        for n in sizes:
            width = (noise_scale / n / dimensions) ** 0.5
            sq_norm = sum(draw.gauss(dimensions**-0.5, width) ** 2 for _ in range(dimensions))
            sq_norms.append(weight(n) ** 2 * sq_norm)
        found = found.plus(size_slope(sq_norms, sizes))
    return found


@pytest.mark.parametrize(
    ("exponent", "weight", "slope"),
    [(0.0, lambda n: n, 2.0), (-0.5, lambda n: n, 1.0), (0.0, lambda n: 1, 0.0), (-0.5, lambda n: 1, -1.0)],
    ids=["by size, all signal", "by size, all noise", "equal, all signal", "equal, all noise"],
)
def test_exact_norms_have_the_slopes_at_the_ends(exponent, weight, slope):
    step = size_slope([(weight(n) * n**exponent) ** 2 for n in (7, 2, 4, 3)], (7, 2, 4, 3))

    assert step.covariance / step.variance == pytest.approx(slope, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("noise_scale", [0.5, 8.0, 200.0])
def test_both_weightings_are_told_apart_at_any_noise_scale(noise_scale):
    by_size = evidence(weight=lambda n: n, noise_scale=noise_scale, num_steps=150)
    equal = evidence(weight=lambda n: 1, noise_scale=noise_scale, num_steps=150, seed=1)

    assert (by_size.is_by_size, by_size.is_equal) == (True, False)
    assert (equal.is_by_size, equal.is_equal) == (False, True)


def test_the_standard_error_is_the_spread_over_repetitions():
    runs = [evidence(weight=lambda n: n, noise_scale=20.0, num_steps=25, seed=seed) for seed in range(60)]

    mean = sum(run.slope for run in runs) / 60
    spread = (sum((run.slope - mean) ** 2 for run in runs) / 59) ** 0.5
    typical = sum(run.standard_error for run in runs) / 60
    assert typical == pytest.approx(spread, rel=5 * (2 * 59) ** -0.5)


def test_nothing_is_said_before_enough_steps():
    found = evidence(weight=lambda n: 1, noise_scale=1e-9, num_steps=MIN_STEPS - 1)

    assert not found.is_equal
    assert evidence(weight=lambda n: 1, noise_scale=1e-9, num_steps=MIN_STEPS).is_equal


@pytest.mark.parametrize(
    ("sq_norms", "sizes"),
    [([1.0, 2.0], (4, 4)), ([1.0, 0.0], (4, 3)), ([1.0, float("inf")], (4, 3)), ([1.0, 1.0], (4, 0))],
    ids=["equal sizes", "no gradient", "not finite", "no examples"],
)
def test_a_step_that_does_not_tell_gives_nothing(sq_norms, sizes):
    assert size_slope(sq_norms, sizes) is None


def test_sums_over_ranks_give_the_same_slope():
    sizes, sq_norms = (7, 2, 4, 3), (1.0, 3.0, 0.5, 2.0)
    x, y = [math.log(size) for size in sizes], [math.log(sq_norm) for sq_norm in sq_norms]
    xy = sum(a * b for a, b in zip(x, y, strict=True))

    found = slope_of_sums(4, sum(x), sum(y), sum(a * a for a in x), xy)

    alone = size_slope(sq_norms, sizes)
    assert (found.covariance, found.variance) == pytest.approx((alone.covariance, alone.variance))


@pytest.mark.parametrize("sums", [(1, 1.0, 1.0, 1.0, 1.0), (2, 2.0, 1.0, 2.0, 1.0), (math.nan,) * 5])
def test_sums_that_do_not_tell(sums):
    """One small batch, equal sizes, sizes that nobody knows."""
    assert slope_of_sums(*sums) is None
