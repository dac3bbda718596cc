"""Small batches that differ by their place in the step are found; samples of the same data are not."""

import random

import pytest

from noisescale_core.estimators.order_of_passes import Contrasts, PassOrder, contrasts


def looks(draw, num_steps, seed):
    """Whether a run is called ordered at any of its steps; `draw` gives the squared norms of a step and its signal."""
    numbers = random.Random(seed)
    found = PassOrder()
    for step in range(num_steps):
        sq_norms, signal = draw(numbers)
        found = found.plus(contrasts(sq_norms), signal)
        if found.is_ordered:
            return step
    return None


def chi_squared(numbers, dimensions):
    return sum(numbers.gauss(0, 1) ** 2 for _ in range(dimensions))


def test_the_contrasts_of_four_small_batches():
    assert contrasts([3.0, 1.0, 3.0, 1.0]) == Contrasts(alternating=0.5, halves=0.0)
    assert contrasts([3.0, 3.0, 1.0, 1.0]) == Contrasts(alternating=0.0, halves=0.5)
    assert contrasts([4.0, 9.0, 2.0]) == Contrasts(alternating=-5 / 13, halves=2 / 6)


@pytest.mark.parametrize("sq_norms", [[], [1.0], [0.0, 0.0], [float("inf"), 1.0], [float("nan"), 1.0]])
def test_steps_without_a_contrast(sq_norms):
    assert contrasts(sq_norms) is None


@pytest.mark.parametrize("dimensions", [1, 4])
@pytest.mark.parametrize("num_small", [2, 4])
def test_samples_of_the_same_data_raise_no_alarm_however_heavy_their_tails(num_small, dimensions):
    def draw(numbers):
        return [chi_squared(numbers, dimensions) * numbers.paretovariate(0.7) for _ in range(num_small)], 0.1

    assert [looks(draw, 500, seed) for seed in range(20)] == [None] * 20


@pytest.mark.parametrize("sq_norms", [(1.0, 1.5), (1.0, 1.5, 1.0, 1.5), (1.5, 1.5, 1.0, 1.0)])
def test_places_of_different_length_are_found(sq_norms):
    def draw(numbers):
        return [mean * chi_squared(numbers, 10) for mean in sq_norms], 0.1

    assert all((looks(draw, 400, seed) or 400) < 400 for seed in range(5))


def test_a_small_difference_is_none_however_long_the_run():
    assert looks(lambda numbers: ([1.02, 1.0 + 1e-3 * numbers.random()], 0.1), 3000, 0) is None


def test_small_batches_that_point_away_from_each_other_are_found_though_they_are_as_long():
    """A discriminator near its balance: the gradients of both halves cancel."""
    step = looks(lambda numbers: ([1.0, 1.0], -0.5 + 0.1 * numbers.gauss(0, 1)), 100, 0)

    assert step is not None
    assert step <= 30


def test_noise_without_a_gradient_is_not_taken_for_it():
    def draw(numbers):
        first, second = numbers.gauss(0, 1), numbers.gauss(0, 1)
        return [first**2, second**2], 2 * first * second / (first**2 + second**2)

    assert [looks(draw, 1000, seed) for seed in range(10)] == [None] * 10
