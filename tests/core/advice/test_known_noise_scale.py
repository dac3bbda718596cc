"""The noise scale by all looks: which of them count, and the moment that it is of."""

from dataclasses import replace
from random import Random

import pytest

from advised_runs import advised_run, stretch
from noisescale_core.advice.parts.known_noise_scale import Peak, is_decayed, known_noise_scale, last_informed_step
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


def test_a_rate_that_fell_twelvefold_with_its_batch_still_tells_of_the_run():
    """That batch was lowered once and for all; else nothing would be known from there on."""
    looks = [look(1.2), look(0.1)._replace(examples=8 * 100 / 12), look(0.005)._replace(examples=8 * 100 / 12)]

    found = known_noise_scale(looks)

    assert found.belief == belief(looks[:2])
    assert found.relative_rate == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("batch", "is_decay"), [(128.0, True), (64.0, True), (16.0, True), (12.0, False), (None, True)]
)
def test_advice_takes_a_low_rate_for_decayed_unless_it_fell_with_its_batch(batch, is_decay):
    warm, cold = stretch(128.0), replace(stretch(128.0), batch_size=batch, learning_rate=0.001)
    run = advised_run(spent=[warm] * 40 + [cold] * 10, learning_rate=0.001, batch_size=batch)

    assert is_decayed(run) is is_decay
    assert last_informed_step(run) == (399 if is_decay else 499)


@pytest.mark.parametrize("seed", range(20))
def test_the_peak_at_a_batch_is_that_of_all_rates_each_in_terms_of_it(seed):
    random = Random(seed)
    stretches = [
        (random.choice([None, 0.0, random.random()]), random.choice([None, 2.0 ** random.randint(0, 9)]))
        for _ in range(9)
    ]

    peak = Peak(stretches)

    for batch in (None, 1.0, 7.0, 64.0, 2000.0):
        scaled = [rate * (min(1.0, batch / one) if batch and one else 1.0) for rate, one in stretches if rate]
        assert peak.at(batch) == pytest.approx(max(scaled, default=0.0))


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_learning_rate_that_is_none_moves_nothing(rate):
    found = known_noise_scale([look(rate), look(rate)])

    assert (found.share, found.relative_rate) == (1.0, 1.0)


def test_nothing_is_known_before_eight_steps():
    assert known_noise_scale([]) is None
    assert known_noise_scale([look(1.0, updates=7)]) is None
    # 8 steps, of which 4 count
    assert known_noise_scale([look(1.0, updates=4), look(0.01, updates=4)]) is None
