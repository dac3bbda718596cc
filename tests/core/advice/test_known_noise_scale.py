"""The noise scale by all looks: which of them count, and the moment that it is of."""

import pytest

from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.estimators.belief import belief
from noisescale_core.estimators.looks import Look


def look(learning_rate=None, noise_scale=1000.0, updates=8):
    """Steps of one look, all alike, at a batch of 100."""
    x, y = noise_scale, 1.0
    return Look(
        updates,
        updates * x,
        updates * y,
        updates * x * x,
        updates * y * y,
        updates * x * y,
        updates * 100,
        updates,
        learning_rate,
    )


def test_without_learning_rates_every_look_counts():
    looks = [look() for _ in range(5)]

    found = known_noise_scale(looks)

    assert found.belief == belief(looks)
    assert (found.share, found.relative_rate) == (1.0, 1.0)


def test_looks_below_a_tenth_of_the_peak_are_left_out_and_the_moment_is_that_of_the_last_that_counts():
    counted = [look(1.0), look(1.0), look(0.5), look(0.2)]

    found = known_noise_scale([*counted, look(0.05, noise_scale=9e4, updates=24), look(0.0, noise_scale=9e4)])

    assert found.belief == belief(counted)
    assert found.share == pytest.approx(32 / 64)
    assert found.relative_rate == pytest.approx(0.2)


def test_a_warm_up_is_no_decay():
    found = known_noise_scale([look(0.2), look(0.6), look(1.0)])

    assert (found.share, found.relative_rate) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rate", "batch", "relative"), [(0.25, 25.0, 1.0), (0.5, 25.0, 1.0), (0.125, 25.0, 0.5), (1.0, 400.0, 1.0)]
)
def test_a_rate_that_fell_with_its_batch_has_not_decayed(rate, batch, relative):
    """By the rule of SGD or by that of Adam; what is below that has."""
    found = known_noise_scale([look(1.0), look(rate)._replace(examples=batch * 8)])

    assert found.relative_rate == pytest.approx(relative)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_learning_rate_that_is_none_moves_nothing(rate):
    found = known_noise_scale([look(rate), look(rate)])

    assert (found.share, found.relative_rate) == (1.0, 1.0)


def test_nothing_is_known_before_eight_steps():
    assert known_noise_scale([]) is None
    assert known_noise_scale([look(1.0, updates=7)]) is None
    # 8 steps, of which 4 count
    assert known_noise_scale([look(1.0, updates=4), look(0.01, updates=4)]) is None
