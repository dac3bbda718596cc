import pytest

from noisescale.theory import learning_rate


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
