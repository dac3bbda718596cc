import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import learning_rate
from noisescale_core.theory.learning_rate import RuleFamily

sizes = st.floats(1e-2, 1e8)


def test_the_sgd_gain_is_adascales():
    """AdaScale gain at φ = 700, B = 64, k = 16 is 7.0905 (adaptdl)."""
    assert learning_rate.gain(from_batch=64, to_batch=64 * 16, noise_scale=700) == pytest.approx(7.0905, abs=1e-4)


@given(batch=sizes, noise_scale=sizes)
def test_the_gain_maximises_the_progress_of_one_step_on_a_quadratic(batch, noise_scale):
    """One step on G = H = 1, Σ = φ: loss falls by ε - ε² (1 + φ / B) / 2, largest at ε = 1 / (1 + φ / B)."""
    base = 1.0

    best = learning_rate.gain(from_batch=base, to_batch=batch, noise_scale=noise_scale) / (1 + noise_scale / base)

    def fall(rate):
        return rate - rate * rate * (1 + noise_scale / batch) / 2

    assert fall(best) >= max(fall(0.99 * best), fall(1.01 * best))


def test_far_below_the_noise_scale_sgd_is_linear_and_adam_square_root():
    sgd = learning_rate.rescale(optimizer="SGD", from_batch=1, to_batch=4, noise_scale=1e9)
    adam = learning_rate.rescale(optimizer="AdamW", from_batch=1, to_batch=4, noise_scale=1e9)

    assert sgd.factor == pytest.approx(4)
    assert adam.factor == pytest.approx(2)


def test_without_an_upper_bound_on_the_noise_scale_the_rule_is_linear():
    assert learning_rate.gain(from_batch=64, to_batch=256, noise_scale=math.inf) == 4


@pytest.mark.parametrize("optimizer", ["Muon", "Lion", "LARS", "LAMB", "Adagrad", "NAdam", None])
def test_an_optimizer_without_a_verified_rule_is_said_to_have_none(optimizer):
    rule = learning_rate.rescale(optimizer=optimizer, from_batch=1, to_batch=4, noise_scale=1e9)

    assert not rule.is_verified
    assert "start" in rule.name


@pytest.mark.parametrize("optimizer", ["AdamW", "FusedAdam", "PagedAdamW8bit", "RMSprop", "DeepSpeedCPUAdam"])
def test_adam_is_known_by_its_other_names(optimizer):
    assert learning_rate.rescale(optimizer=optimizer, from_batch=1, to_batch=4, noise_scale=1e9).is_verified


@pytest.mark.parametrize(
    ("optimizer", "family"),
    [
        ("SGD", RuleFamily.SGD),
        ("AdamW", RuleFamily.ADAM),
        ("NAdam", RuleFamily.ADAM),
        ("Muon", RuleFamily.OTHER),
        (None, RuleFamily.OTHER),
    ],
)
def test_optimizers_belong_to_families(optimizer, family):
    assert learning_rate.family_of(optimizer) is family


@pytest.mark.parametrize(
    ("optimizer", "momentum", "averages"),
    [
        ("SGD", 0.9, True),
        ("SGD", 0.0, False),
        ("SGD", None, None),
        ("AdamW", None, True),
        ("NAdam", 0.0, True),
        ("RMSprop", None, None),
        ("Lion", 0.9, None),
        (None, None, None),
    ],
)
def test_momentum_and_adam_average_gradients_and_of_others_that_is_not_known(optimizer, momentum, averages):
    assert learning_rate.averages_gradients(optimizer, momentum) is averages


@pytest.mark.parametrize(("num_points", "expected"), [(3, (1, 2, 4)), (4, (0.5, 1, 2, 4)), (5, (0.5, 1, 2, 4, 8))])
def test_a_short_search_doubles_around_its_centre(num_points, expected):
    assert learning_rate.grid(2.0, num_points=num_points) == expected


def test_a_short_search_has_three_points_unless_told_otherwise():
    assert learning_rate.grid(2.0) == (1, 2, 4)


def test_a_long_search_is_refused():
    with pytest.raises(ValueError, match="num_points must be 3, 4 or 5, got 9"):
        learning_rate.grid(2.0, num_points=9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learning_rate.gain(from_batch=0, to_batch=1, noise_scale=1), "from_batch must be .* got 0: a batch"),
        (lambda: learning_rate.gain(from_batch=1, to_batch=1, noise_scale=-1), "noise_scale must not be negative"),
        (lambda: learning_rate.grid(0.0), "center must be positive and finite, got 0"),
    ],
)
def test_a_learning_rate_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
