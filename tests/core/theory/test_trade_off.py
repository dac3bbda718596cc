import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import trade_off
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.trade_off import TradeOff, example_efficiency, step_efficiency

sizes = st.floats(1e-3, 1e9)


@pytest.mark.parametrize("batch", [1, 64, 1000, 1e7])
def test_the_two_efficiencies_add_to_one(batch):
    assert example_efficiency(1000, batch) + step_efficiency(1000, batch) == pytest.approx(1)


def test_at_the_noise_scale_half_of_each_is_lost():
    assert example_efficiency(300, 300) == step_efficiency(300, 300) == 0.5


@pytest.mark.parametrize(("noise_scale", "example", "step"), [(0, 0, 1), (math.inf, 1, 0)])
def test_the_efficiencies_reach_their_limits(noise_scale, example, step):
    assert example_efficiency(noise_scale, 64) == example
    assert step_efficiency(noise_scale, 64) == step


@pytest.mark.parametrize(("noise_scale", "batch", "field"), [(-1, 64, "noise_scale"), (9, 0, "batch_size")])
def test_an_efficiency_without_meaning_is_refused(noise_scale, batch, field):
    for share in (example_efficiency, step_efficiency):
        with pytest.raises(ValueError, match=f"{field} must"):
            share(noise_scale, batch)


def test_a_quarter_of_the_critical_batch_takes_5_times_the_steps_and_one_quarter_more_examples():
    """B_noise = 1000, B = 250 against the two limits of McCandlish et al. 2018, eq. 2.11."""
    huge, tiny = 1e12, 1e-9

    assert trade_off.steps_factor(from_batch=huge, to_batch=250, critical_batch=1000) == pytest.approx(5)
    assert trade_off.examples_factor(from_batch=tiny, to_batch=250, critical_batch=1000) == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("share_of_critical", "steps", "examples"), [(1 / 16, 17, 1.0625), (1 / 4, 5, 1.25), (1, 2, 2), (4, 1.25, 5)]
)
def test_steps_and_examples_at_shares_of_the_critical_batch(share_of_critical, steps, examples):
    run = TradeOff(min_steps=1000, min_examples=64_000, target="loss 2.5")
    batch = share_of_critical * run.critical_batch

    assert run.steps(batch) == pytest.approx(1000 * steps)
    assert run.examples(batch) == pytest.approx(64_000 * examples)


@given(min_steps=sizes, min_examples=sizes, batch=sizes)
def test_every_batch_lies_on_the_hyperbola(min_steps, min_examples, batch):
    run = TradeOff(min_steps, min_examples, "loss 2.5")

    excess_steps = run.steps(batch) - min_steps
    excess_examples = run.examples(batch) - min_examples

    # the excesses themselves, formed anew: a difference of two nearly equal numbers would test rounding alone
    assert min_examples / batch == pytest.approx(excess_steps, abs=1e-9 * run.steps(batch))
    assert min_steps * batch == pytest.approx(excess_examples, abs=1e-9 * run.examples(batch))
    assert run.steps(batch) * batch == pytest.approx(run.examples(batch))


@given(min_steps=sizes, min_examples=sizes, batch=sizes)
def test_one_run_and_b_crit_give_the_whole_trade_off(min_steps, min_examples, batch):
    run = TradeOff(min_steps, min_examples, "loss 2.5")

    found = TradeOff.from_run(steps=run.steps(batch), batch=batch, critical_batch=run.critical_batch, target="loss 2.5")

    assert found.min_steps == pytest.approx(min_steps)
    assert found.min_examples == pytest.approx(min_examples)


def test_steps_times_batch_are_examples():
    steps = trade_off.steps_factor(from_batch=64, to_batch=512, critical_batch=700)
    examples = trade_off.examples_factor(from_batch=64, to_batch=512, critical_batch=700)

    assert steps * 512 / 64 == pytest.approx(examples)


@given(from_batch=sizes, to_batch=sizes, critical=sizes)
def test_the_factors_are_those_of_the_trade_off(from_batch, to_batch, critical):
    run = TradeOff(1.0, critical, "loss 2.5")
    at = {"from_batch": from_batch, "to_batch": to_batch, "critical_batch": critical}

    assert trade_off.steps_factor(**at) == pytest.approx(run.steps(to_batch) / run.steps(from_batch))
    assert trade_off.examples_factor(**at) == pytest.approx(run.examples(to_batch) / run.examples(from_batch))


def test_without_any_bound_on_b_crit_the_factors_are_those_of_perfect_scaling():
    at = {"from_batch": 64, "to_batch": 256, "critical_batch": math.inf}

    assert trade_off.steps_factor(**at) == 0.25
    assert trade_off.examples_factor(**at) == 1


@given(critical=sizes, price=sizes)
def test_the_best_batch_minimises_the_priced_cost(critical, price):
    run = TradeOff(1.0, critical, "loss 2.5")

    best = trade_off.best_batch(critical_batch=critical, examples_per_step=price)
    costs = [run.cost(best * 10 ** (i / 50), examples_per_step=price) for i in range(-100, 101)]

    assert costs.index(min(costs)) == 100
    assert min(costs) == pytest.approx((math.sqrt(price) + math.sqrt(critical)) ** 2)


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


@given(batch=sizes, critical=sizes, price=sizes)
def test_the_regret_at_a_price_is_the_extra_cost_and_at_most_the_balanced_one(batch, critical, price):
    run = TradeOff(1.0, critical, "loss 2.5")
    best = trade_off.best_batch(critical_batch=critical, examples_per_step=price)

    found = trade_off.regret_at_price(batch=batch, critical_batch=critical, examples_per_step=price)

    extra = run.cost(batch, examples_per_step=price) / run.cost(best, examples_per_step=price) - 1
    assert found == pytest.approx(extra, abs=1e-9 * (1 + extra))
    assert found <= trade_off.regret(batch=batch, best=best) * (1 + 1e-9) + 1e-12


def test_the_recommendation_is_twice_as_certain_as_b_crit():
    critical = estimate_from_interval(1000, low=500, high=4000, model_log_sd=1.0)

    best = trade_off.best_batch_estimate(critical, examples_per_step=90)

    assert best.value == pytest.approx(300)
    assert best.statistical.down == pytest.approx(math.log(2) / 2)
    assert best.statistical.up == pytest.approx(math.log(4) / 2)
    assert best.model.up == pytest.approx(1.959964 / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"min_steps": 0.0}, "min_steps must be positive and finite, got 0"),
        ({"min_examples": math.nan}, "min_examples must be positive and finite, got nan"),
        ({"target": " "}, "target must name the performance level"),
    ],
)
def test_a_trade_off_without_meaning_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TradeOff(**{"min_steps": 1.0, "min_examples": 1.0, "target": "loss 2.5"} | change)


@pytest.mark.parametrize("function", ["steps", "examples"])
def test_a_batch_of_nothing_is_refused(function):
    run = TradeOff(1000, 64_000, "loss 2.5")

    with pytest.raises(ValueError, match="batch must be positive and finite, got 0: a batch holds at least one"):
        getattr(run, function)(0)
