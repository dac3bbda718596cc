"""What devices beyond one run's batch buy, against exact truth."""

import math
import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.errors import DomainError
from noisescale_core.theory.beyond import (
    best_of,
    chance_of_top,
    larger_model,
    times_as_many,
    trials_needed,
    ways_to_divide,
)
from noisescale_core.theory.intervals import Interval
from noisescale_core.theory.trade_off import TradeOff

EXACT = {
    1: 0.0,
    2: 1 / math.sqrt(math.pi),
    3: 1.5 / math.sqrt(math.pi),
    4: 6 / math.pi**1.5 * math.atan(math.sqrt(2)),
    5: 5 / math.sqrt(math.pi) * (0.25 + 1.5 / math.pi * math.asin(1 / 3)),
}
"""Closed forms of the expected largest of so many standard normal values (David and Nagaraja, Order statistics)."""


@pytest.mark.parametrize(("number", "truth"), EXACT.items())
def test_the_best_of_a_few_runs_is_the_closed_form(number, truth):
    assert best_of(number) == pytest.approx(truth, abs=1e-12)


def test_the_best_of_a_hundred_runs_is_what_draws_have_and_of_millions_what_extreme_values_say():
    draw = random.Random(28)
    drawn = [max(draw.gauss(0, 1) for _ in range(100)) for _ in range(4_000)]

    assert best_of(100) == pytest.approx(2.5076, abs=1e-4)
    assert mean(drawn) == pytest.approx(best_of(100), abs=4 * 0.43 / math.sqrt(4_000))
    assert 5.2 < best_of(2**24) < 5.6


def test_fifty_nine_random_trials_hold_one_of_the_best_twentieth():
    assert trials_needed() == 59
    assert chance_of_top(58) < 0.95 <= chance_of_top(59)
    assert trials_needed(share=0.5, sure=0.75) == 2


@given(share=st.floats(0.001, 0.9), number=st.integers(1, 200))
def test_the_chance_of_a_good_trial_is_that_not_all_are_bad(share, number):
    assert chance_of_top(number, share) == pytest.approx(1 - (1 - share) ** number, abs=1e-12)


@given(there=st.integers(1, 4096), each=st.integers(1, 4096))
def test_the_devices_are_divided_by_doublings_up_to_as_many_runs_as_fit(there, each):
    ways = ways_to_divide(there, each)

    assert ways[0] == 1
    assert max(ways) == min(max(there // each, 2), there)
    assert list(ways) == sorted(set(ways))
    assert all(there // number >= 1 for number in ways)


@given(
    number=st.integers(1, 64),
    each=st.floats(1, 1e4),
    critical=st.floats(1, 1e6),
    min_steps=st.floats(1, 1e6),
)
def test_runs_side_by_side_finish_as_many_more_as_their_steps_say(number, each, critical, min_steps):
    of_all = number * each
    curve = TradeOff(min_steps, min_steps * critical, "a loss")

    found = times_as_many(num_runs=number, batch_of_each=each, batch_of_all=of_all, critical_batch=critical)

    # k in S(B) step times, against one in S(kB); device-hours a run go as the examples
    assert found == pytest.approx(number * curve.steps(of_all) / curve.steps(each))
    assert found == pytest.approx(curve.examples(of_all) / curve.examples(each))
    assert found * (1 + 1e-9) >= 1


def test_far_below_the_critical_batch_side_by_side_gains_nothing_and_far_above_it_everything():
    def gain(critical):
        return times_as_many(num_runs=4, batch_of_each=100, batch_of_all=400, critical_batch=critical)

    assert gain(1e9) == pytest.approx(1, rel=1e-5)
    assert gain(1e-6) == pytest.approx(4)
    assert (gain(math.inf), gain(0.0)) == (1, 4)


@given(times=st.floats(1, 64), batch=st.floats(1, 1e6), critical=st.floats(1, 1e6), width=st.floats(1, 5))
def test_a_larger_model_takes_the_steps_of_its_own_trade_off(times, batch, critical, width):
    found = larger_model(
        times=times, batch=batch, critical_batch=Interval(critical, critical / width, critical * width, 0.95)
    )

    def steps(factor, at):
        small = TradeOff(1e12 / at, 1e12, "a loss")
        large = TradeOff(times * 1e12 / (factor * at), times * 1e12, "its own")
        return large.steps(batch) / small.steps(batch)

    assert found.critical_batch.value == pytest.approx(times**0.44)
    assert found.hours.value == pytest.approx(steps(times**0.44, critical))
    every = [
        steps(times**power, at) for power in (0.42, 0.5, 0.68) for at in (critical / width, critical, critical * width)
    ]
    assert found.hours.low == pytest.approx(min(every))
    assert found.hours.high == pytest.approx(max(every))
    assert found.device_hours.value == pytest.approx(times * found.hours.value)
    # between the fewest steps and the fewest examples: times^(1 - q) to times
    assert times**0.56 * (1 - 1e-9) <= found.hours.value <= times * (1 + 1e-9)


def test_a_critical_batch_without_an_upper_end_bounds_the_hours_by_the_tokens():
    found = larger_model(times=4, batch=100, critical_batch=Interval(50.0, 0.0, math.inf, 0.95))

    assert (found.hours.low, found.hours.high) == pytest.approx((4**0.32, 4))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: best_of(0), "num_runs must lie between 1 and 16777216, got 0"),
        (lambda: chance_of_top(3, 1.0), "share must be between 0 and 1"),
        (lambda: trials_needed(sure=0.0), "sure must be between 0 and 1"),
        (lambda: ways_to_divide(0, 1), "num_devices must be positive"),
        (lambda: larger_model(times=0, batch=1, critical_batch=Interval(1, 1, 1, 0.95)), "times must be positive"),
    ],
)
def test_what_is_no_number_of_runs_or_share_is_refused(ask, message):
    with pytest.raises(DomainError, match=message):
        ask()
