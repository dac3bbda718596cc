import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import adascale, learning_rate
from noisescale_core.theory.learning_rate import Family
from noisescale_core.theory.learning_rate_curves import SVHN_SGD, PowerCurve, SaturatingCurve, SurgeCurve

sizes = st.floats(1e-2, 1e8)


def test_the_sgd_gain_is_adascales():
    """AdaScale gain at φ = 700, B = 64, k = 16 is 7.0905 (adaptdl)."""
    assert learning_rate.gain(from_batch=64, to_batch=64 * 16, noise_scale=700) == pytest.approx(7.0905, abs=1e-4)


@given(variance=sizes, sq_mean=sizes, scale=st.floats(1, 1e4), base=sizes)
def test_the_gain_of_the_moments_is_the_gain_of_their_noise_scale(variance, sq_mean, scale, base):
    noise_scale = base * variance / sq_mean

    found = adascale.gain_of_moments(variance=variance, sq_mean=sq_mean, scale=scale)

    assert found == pytest.approx(
        learning_rate.gain(from_batch=base, to_batch=scale * base, noise_scale=noise_scale), rel=1e-6
    )
    assert 1 - 1e-9 <= found <= scale * (1 + 1e-9)


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
    [("SGD", Family.SGD), ("AdamW", Family.ADAM), ("NAdam", Family.ADAM), ("Muon", Family.OTHER), (None, Family.OTHER)],
)
def test_optimizers_belong_to_families(optimizer, family):
    assert learning_rate.family_of(optimizer) is family


@pytest.mark.parametrize(("num_points", "expected"), [(3, (1, 2, 4)), (4, (0.5, 1, 2, 4)), (5, (0.5, 1, 2, 4, 8))])
def test_a_short_search_doubles_around_its_centre(num_points, expected):
    assert learning_rate.grid(2.0, num_points=num_points) == expected


def test_a_short_search_has_three_points_unless_told_otherwise():
    assert learning_rate.grid(2.0) == (1, 2, 4)


def test_a_long_search_is_refused():
    with pytest.raises(ValueError, match="num_points must be 3, 4 or 5, got 9"):
        learning_rate.grid(2.0, num_points=9)


def test_the_published_svhn_curve_is_a_saturating_one():
    """ε = 0.27 B / (96 + B): McCandlish et al. 2018, footnote 20."""
    for batch in (1, 96, 1000):
        assert SVHN_SGD.at(batch) == pytest.approx(0.27 * batch / (96 + batch))


@given(from_batch=sizes, to_batch=sizes, noise_scale=sizes)
def test_along_the_saturating_curve_the_learning_rate_grows_by_the_gain(from_batch, to_batch, noise_scale):
    curve = SaturatingCurve(limit=1.0, batch_scale=noise_scale)

    gain = learning_rate.gain(from_batch=from_batch, to_batch=to_batch, noise_scale=noise_scale)

    assert curve.at(to_batch) / curve.at(from_batch) == pytest.approx(gain)


def test_the_surge_peaks_at_its_batch_and_follows_the_square_root_far_below():
    surge = SurgeCurve(peak=3e-3, peak_batch=1000)
    rates = [surge.at(1000 * 2 ** (i / 4)) for i in range(-20, 21)]

    assert rates.index(max(rates)) == 20
    assert surge.at(1000) == pytest.approx(3e-3)
    assert surge.at(1e-3) == pytest.approx(2 * 3e-3 * math.sqrt(1e-6), rel=1e-5)


def test_the_power_curve_with_exponent_one_is_goyals():
    """ε = 0.1 B / 256, Goyal et al. 2017."""
    assert PowerCurve(0.1 / 256, 1.0).at(8192) == pytest.approx(3.2)


def test_schedules_are_read_at_the_progress_and_end_with_it():
    """Progress by hand, step by step."""
    stretches = [(100, 64, 700.0), (50, 1024, 700.0), (30, 256, 2000.0)]
    tau = sum(n * (1 + phi / 64) / (1 + phi / b) for n, b, phi in stretches)

    progress = adascale.progress_of(stretches, base_batch=64, base_steps=500)

    assert progress.steps == 180
    assert progress.tau == pytest.approx(tau)
    assert progress.schedule_step == math.floor(tau)
    assert progress.is_finished == (tau >= 500)
    assert progress.share == pytest.approx(tau / 500)


def test_at_the_base_batch_progress_counts_steps():
    assert adascale.progress_of([(7, 64, 900.0)], base_batch=64, base_steps=7).is_finished


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learning_rate.gain(from_batch=0, to_batch=1, noise_scale=1), "from_batch must be .* got 0: a batch"),
        (lambda: learning_rate.gain(from_batch=1, to_batch=1, noise_scale=-1), "noise_scale must not be negative"),
        (lambda: learning_rate.grid(0.0), "center must be positive and finite, got 0"),
        (lambda: SaturatingCurve(0.27, 0.0), "batch_scale must be positive and finite, got 0: fit it"),
        (lambda: SurgeCurve(0.27, 10).at(0), "batch must be positive"),
        (lambda: adascale.gain_of_moments(variance=0, sq_mean=1, scale=2), "variance must be .* both moments must be"),
        (lambda: adascale.Progress(64, 0), "base_steps must be positive and finite, got 0: the plan"),
    ],
)
def test_a_learning_rate_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
