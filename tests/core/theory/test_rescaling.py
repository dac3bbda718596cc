import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory.learning_rate import BatchChange
from noisescale_core.theory.rescaling import Hyperparameters, rescale_all

ADAM = Hyperparameters(learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.1, warmup_steps=2000)
SMALL = BatchChange(from_batch=64, to_batch=256, noise_scale=1e9)


def test_far_below_the_noise_scale_adamw_follows_the_square_root_rule():
    new = rescale_all("AdamW", ADAM, SMALL)

    assert new.of("learning_rate").after == pytest.approx(2e-3)
    assert new.of("beta1").after == pytest.approx(0.6)
    assert new.of("beta2").after == pytest.approx(0.996)
    assert new.of("epsilon").after == pytest.approx(0.5e-8)
    assert new.of("weight_decay").after == pytest.approx(0.2)
    assert new.learning_rates == pytest.approx((1e-3, 2e-3, 4e-3))
    for field in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"):
        assert new.of(field).is_verified
        assert new.of(field).is_in_range


def simulated_adam(settings, batch, examples, seed):
    """Mean square of Adam's weight on noise of variance 1 / batch and a weak pull, over the later half of a run."""
    noise = random.Random(seed)
    weight = mean = sq_mean = 0.0
    squares = []
    for step in range(1, examples // batch + 1):
        gradient = 0.3 * weight + noise.gauss(0, 1 / math.sqrt(batch))
        mean = settings["beta1"] * mean + (1 - settings["beta1"]) * gradient
        sq_mean = settings["beta2"] * sq_mean + (1 - settings["beta2"]) * gradient * gradient
        root = math.sqrt(sq_mean / (1 - settings["beta2"] ** step))
        weight -= settings["learning_rate"] * mean / (root + settings["epsilon"])
        squares.append(weight * weight)
    return statistics.fmean(squares[len(squares) // 2 :])


@pytest.mark.thorough
def test_adam_explores_as_far_at_four_times_the_batch_after_the_square_root_rule():
    """One stochastic differential equation has one stationary variance; a run without the rule has another."""
    before = {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.3}
    new = rescale_all("Adam", Hyperparameters(**before), BatchChange(1, 4, 1e9))
    after = {field: new.of(field).after for field in before}

    def log_variances(settings, batch):
        return [math.log(simulated_adam(settings, batch, 16_000, seed)) for seed in range(16)]

    small, rescaled, left_alone = log_variances(before, 1), log_variances(after, 4), log_variances(before, 4)
    error = math.hypot(statistics.stdev(small), statistics.stdev(rescaled)) / 4
    assert error < 0.1
    assert statistics.fmean(rescaled) - statistics.fmean(small) == pytest.approx(0, abs=5 * error)
    assert statistics.fmean(left_alone) - statistics.fmean(small) < -5 * error


def test_a_beta_below_zero_is_said_and_not_clipped():
    new = rescale_all("AdamW", ADAM, BatchChange(64, 64 * 16, 1e9))

    beta1 = new.of("beta1")
    assert beta1.after is None
    assert not beta1.is_in_range
    assert "ends at k = 10; at k = 16 it would be -0.6" in beta1.text
    assert beta1.alternative == pytest.approx(0.9**16)
    assert new.of("beta2").after == pytest.approx(1 - 16 * 0.001)


@given(beta=st.floats(0.5, 0.99999), factor=st.floats(1e-3, 1e3))
def test_both_rules_for_a_beta_agree_to_first_order(beta, factor):
    change = rescale_all("Adam", Hyperparameters(1e-3, beta1=beta), BatchChange(1.0, factor, 1e9)).of("beta1")

    first_order = factor * (1 - beta)
    if change.after is None:
        assert first_order > 1
    else:
        assert abs(change.after - change.alternative) <= first_order * (first_order + 1 - beta)


@given(factor=st.floats(0.01, 100), noise_scale=st.floats(1, 1e6))
def test_the_decay_timescale_of_the_plan_stays(factor, noise_scale):
    new = rescale_all("AdamW", ADAM, BatchChange(512, 512 * factor, noise_scale))

    def timescale(batch, learning_rate, weight_decay):
        return batch / (learning_rate * weight_decay * 1e9)

    before = timescale(512, 1e-3, 0.1)
    assert timescale(512 * factor, new.of("learning_rate").after, new.of("weight_decay").after) == pytest.approx(before)


@given(steps=st.floats(1, 1e5), factor=st.floats(0.1, 100))
def test_the_warm_up_is_restated_in_examples_both_ways(steps, factor):
    batch = BatchChange(100, 100 * factor, 1e9)
    change = rescale_all("AdamW", Hyperparameters(1e-3, warmup_steps=steps), batch).of("warmup_steps")

    assert change.after * batch.to_batch == pytest.approx(factor * steps * batch.from_batch)
    assert change.alternative * batch.to_batch == pytest.approx(steps * batch.from_batch)


def test_momentum_is_kept_or_keeps_the_noise_at_the_same_learning_rate():
    change = rescale_all("SGD", Hyperparameters(0.1, momentum=0.9), BatchChange(64, 256, 1e9)).of("momentum")

    assert change.after == 0.9
    assert 256 * (1 - change.alternative) == pytest.approx(64 * (1 - 0.9))


def test_sgds_learning_rate_takes_the_gain_and_its_weight_decay_stays_where_that_is_linear():
    now = Hyperparameters(0.1, momentum=0.9, weight_decay=5e-4)

    linear = rescale_all("SGD", now, BatchChange(64, 256, 1e12))
    bent = rescale_all("SGD", now, BatchChange(64, 64 * 16, 700))

    assert linear.of("learning_rate").after == pytest.approx(0.4)
    assert linear.of("weight_decay").after == pytest.approx(5e-4)
    assert bent.of("learning_rate").after == pytest.approx(0.70905, abs=1e-5)
    assert not bent.of("weight_decay").is_verified


@pytest.mark.parametrize("optimizer", ["Lion", "Muon", "LARS", "LAMB"])
def test_where_no_rule_is_published_the_square_root_is_a_start_and_the_rest_stays(optimizer):
    new = rescale_all(optimizer, ADAM, SMALL)

    assert new.of("learning_rate").after == pytest.approx(2e-3)
    assert new.of("beta1").after == 0.9
    assert new.of("epsilon").after == 1e-8
    assert not any(change.is_verified for change in new.changes)


def test_adamw_by_another_name_decouples_its_weight_decay():
    decay = rescale_all("PagedAdamW8bit", ADAM, SMALL).of("weight_decay")

    assert decay.after == pytest.approx(0.2)
    assert decay.is_verified


def test_l2_inside_adam_has_no_rule():
    decay = rescale_all("Adam", ADAM, SMALL).of("weight_decay")

    assert decay.after == 0.1
    assert not decay.is_verified
    assert "AdamW has one" in decay.text


@pytest.mark.parametrize("noise_scale", [100.0, None])
def test_beyond_the_noise_scale_or_without_one_the_square_root_rule_is_out_of_range(noise_scale):
    new = rescale_all("AdamW", ADAM, BatchChange(64, 256, noise_scale))

    assert not new.of("learning_rate").is_in_range
    assert not new.of("beta2").is_in_range


@given(factor=st.floats(0.01, 100), noise_scale=st.floats(1, 1e6), optimizer=st.sampled_from(["SGD", "AdamW", "Lion"]))
def test_there_and_back_again_changes_nothing(factor, noise_scale, optimizer):
    now = Hyperparameters(1e-3, weight_decay=0.1, epsilon=1e-8)

    there = rescale_all(optimizer, now, BatchChange(64, 64 * factor, noise_scale))
    then = Hyperparameters(
        there.of("learning_rate").after,
        weight_decay=there.of("weight_decay").after,
        epsilon=there.of("epsilon").after,
    )
    back = rescale_all(optimizer, then, BatchChange(64 * factor, 64, noise_scale))

    for field in ("learning_rate", "weight_decay", "epsilon"):
        assert back.of(field).after == pytest.approx(getattr(now, field))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Hyperparameters(0.0), "learning_rate must be positive and finite, got 0"),
        (lambda: Hyperparameters(0.1, beta2=1.0), "beta2 must be below 1, got 1: 0.9 is usual"),
        (lambda: Hyperparameters(0.1, weight_decay=-0.1), "weight_decay must not be negative, got -0.1"),
        (lambda: BatchChange(0, 1, 1), "from_batch must be positive"),
        (lambda: BatchChange(1, 1, -1), "noise_scale must not be negative, got -1: None where it is not resolved"),
    ],
)
def test_settings_without_meaning_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
