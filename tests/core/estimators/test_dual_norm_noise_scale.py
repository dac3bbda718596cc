"""Terms from two bounds of a dual norm: products of different steps, and none where the bounds lie too far apart."""

import math

import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.dual_norm_noise_scale import (
    MIN_STEPS,
    DualNorms,
    DualNormSeries,
    deviation_from_halves,
    deviation_from_roots,
)


def make_series(norms, num_steps=MIN_STEPS):
    series = DualNormSeries()
    for _ in range(num_steps):
        series.add(norms)
    return series


def test_a_term_is_a_product_of_two_different_steps():
    series = make_series(DualNorms(noise=3.0, upper=4.0, lower=2.0))

    terms = series.add(DualNorms(noise=5.0, upper=100.0, lower=2.5))

    assert (terms.trace_cov, terms.grad_sq_norm) == (15.0, 10.0)


def test_the_first_steps_only_decide_whether_later_ones_count():
    series = DualNormSeries()
    norms = DualNorms(noise=3.0, upper=4.0, lower=2.0)

    found = [series.add(norms) for _ in range(MIN_STEPS + 1)]

    assert found[:-1] == [None] * MIN_STEPS
    assert found[-1] is not None


def test_bounds_too_far_apart_give_no_terms_but_a_bracket():
    series = make_series(DualNorms(noise=30.0, upper=4.0, lower=1.0))

    bracket = series.bracket()

    assert series.add(DualNorms(noise=30.0, upper=4.0, lower=1.0)) is None
    assert (bracket.low, bracket.high) == pytest.approx((56.25, 900.0))


def test_without_a_visible_gradient_the_bracket_is_open():
    series = make_series(DualNorms(noise=30.0, upper=4.0, lower=0.1))

    bracket = series.bracket()

    assert bracket.low == pytest.approx(56.25)
    assert bracket.high is None


def test_a_step_is_never_chosen_by_its_own_gradient():
    series = make_series(DualNorms(noise=30.0, upper=4.0, lower=0.0), 100)

    terms = series.add(DualNorms(noise=30.0, upper=4.0, lower=4.0))

    assert terms is None


def test_a_step_that_is_not_finite_leaves_no_trace():
    norms = DualNorms(noise=3.0, upper=4.0, lower=2.0)
    series = make_series(norms)

    assert series.add(DualNorms(noise=math.nan, upper=4.0, lower=2.0)) is None
    assert series.add(norms).trace_cov == 9.0


@pytest.mark.parametrize(("share_a", "batch_size"), [(0.5, 64.0), (0.25, 10.0)])
def test_the_deviation_from_halves_inverts_the_mean_of_a_folded_gaussian(share_a, batch_size):
    sigma = 0.7
    distance = sigma * math.sqrt(1 / (share_a * batch_size) + 1 / ((1 - share_a) * batch_size)) * math.sqrt(2 / math.pi)

    found = deviation_from_halves(distance=distance, share_a=share_a, share_b=1 - share_a, batch_size=batch_size)

    assert found == pytest.approx(sigma, rel=1e-12)


def test_a_half_without_examples_is_refused():
    with pytest.raises(EstimationError, match="both halves of the step need examples"):
        deviation_from_halves(distance=1.0, share_a=1.0, share_b=0.0, batch_size=8.0)


@pytest.mark.parametrize("num_small_batches", [4, 5, 6, 7, 8, 33])
def test_the_extrapolation_removes_one_over_the_degrees_of_freedom_and_its_square(num_small_batches):
    linear, quadratic = -0.3, (0.0 if num_small_batches == 4 else 0.05)
    first, second = (num_small_batches + 1) // 2 - 1, num_small_batches // 2 - 1

    def root(inverse, inverse_sq):
        return 2.0 + linear * inverse + quadratic * inverse_sq

    middle = (1 / first + 1 / second) / 2
    found = deviation_from_roots(
        two=root(1, 1),
        first=root(middle, middle**2),
        second=root(middle, middle**2),
        every=root(1 / (num_small_batches - 1), 1 / (num_small_batches - 1) ** 2),
        num_small_batches=num_small_batches,
    )

    assert found == pytest.approx(2.0, rel=1e-12)


def test_fewer_than_four_small_batches_are_refused():
    with pytest.raises(EstimationError, match="num_small_batches must be at least 4, got 3"):
        deviation_from_roots(two=1.0, first=1.0, second=1.0, every=1.0, num_small_batches=3)
