import math

import pytest

from noisescale.theory import learning_rate, trade_off
from noisescale.theory.efficiency import example_efficiency, step_efficiency


@pytest.mark.parametrize("batch", [1, 64, 1000, 1e7])
def test_the_two_efficiencies_add_to_one(batch):
    assert example_efficiency(1000, batch) + step_efficiency(1000, batch) == pytest.approx(1)


def test_at_the_noise_scale_half_of_each_is_lost():
    assert example_efficiency(300, 300) == step_efficiency(300, 300) == 0.5


def test_a_quarter_of_the_critical_batch_takes_5_times_the_steps_and_one_quarter_more_examples():
    """B_noise = 1000, B = 250 against the two limits of McCandlish et al. 2018, eq. 2.11."""
    huge, tiny = 1e12, 1e-9

    assert trade_off.steps_factor(from_batch=huge, to_batch=250, critical_batch=1000) == pytest.approx(5)
    assert trade_off.examples_factor(from_batch=tiny, to_batch=250, critical_batch=1000) == pytest.approx(1.25)


def test_steps_times_batch_are_examples():
    steps = trade_off.steps_factor(from_batch=64, to_batch=512, critical_batch=700)
    examples = trade_off.examples_factor(from_batch=64, to_batch=512, critical_batch=700)

    assert steps * 512 / 64 == pytest.approx(examples)


def test_the_best_batch_minimises_the_priced_cost():
    critical, price = 900.0, 40.0

    best = trade_off.best_batch(critical_batch=critical, examples_per_step=price)

    def cost(batch):
        return price * (1 + critical / batch) + batch * (1 + critical / batch)

    assert cost(best) < min(cost(best * 1.01), cost(best / 1.01))


@pytest.mark.parametrize(("preference", "expected"), [(0.5, 900.0), (0.2, 225.0), (0.8, 3600.0)])
def test_a_preference_is_an_exchange_rate(preference, expected):
    price = trade_off.exchange_rate(preference=preference, critical_batch=900)

    assert trade_off.best_batch(critical_batch=900, examples_per_step=price) == pytest.approx(expected)


@pytest.mark.parametrize("preference", [0, 1, -0.1, 2])
def test_a_preference_at_or_beyond_the_ends_is_refused(preference):
    with pytest.raises(ValueError, match=f"got {preference:g}"):
        trade_off.exchange_rate(preference=preference, critical_batch=900)


@pytest.mark.parametrize(("miss", "extra"), [(1, 0), (math.sqrt(2), 0.0303), (2, 0.125), (0.5, 0.125), (4, 0.5625)])
def test_regret_of_missing_the_best_batch(miss, extra):
    assert trade_off.regret(batch=miss, best=1) == pytest.approx(extra, abs=2e-4)


def test_the_sgd_gain_is_adascales():
    """AdaScale gain at φ = 700, B = 64, k = 16 is 7.0905 (adaptdl)."""
    assert learning_rate.gain(from_batch=64, to_batch=64 * 16, noise_scale=700) == pytest.approx(7.0905, abs=1e-4)


def test_far_below_the_noise_scale_sgd_is_linear_and_adam_square_root():
    sgd = learning_rate.rescale(optimizer="SGD", from_batch=1, to_batch=4, noise_scale=1e9)
    adam = learning_rate.rescale(optimizer="AdamW", from_batch=1, to_batch=4, noise_scale=1e9)

    assert sgd.factor == pytest.approx(4)
    assert adam.factor == pytest.approx(2)


def test_an_optimizer_without_a_verified_rule_is_said_to_have_none():
    rule = learning_rate.rescale(optimizer="Muon", from_batch=1, to_batch=4, noise_scale=1e9)

    assert not rule.is_verified
    assert "start" in rule.name
