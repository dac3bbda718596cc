import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import trade_off
from noisescale_core.theory.intervals import Estimate, LogError, estimate_from_interval


def test_statistical_and_model_error_stay_apart_and_add_in_quadrature():
    estimate = estimate_from_interval(100, low=100 / math.exp(3), high=100 * math.exp(6), model_log_sd=4 / 1.959964)

    assert (estimate.statistical.down, estimate.statistical.up) == (pytest.approx(3), pytest.approx(6))
    assert (estimate.model.down, estimate.model.up) == (pytest.approx(4), pytest.approx(4))
    assert estimate.error.down == pytest.approx(5, abs=1e-5)
    assert estimate.interval.low == pytest.approx(100 * math.exp(-5), rel=1e-5)
    assert estimate.interval.high == pytest.approx(100 * math.exp(math.hypot(6, 4)), rel=1e-5)


@given(value=st.floats(1e-6, 1e6), down=st.floats(0, 10), up=st.floats(0, 10), exponent=st.floats(-3, 3))
def test_a_power_is_what_its_function_makes_of_the_ends(value, down, up, exponent):
    estimate = Estimate(value, LogError(down, up), LogError(up, down))

    power = estimate.to_power(exponent, factor=7)
    carried = estimate.through(lambda x: 7 * x**exponent)

    assert power.interval.low == pytest.approx(carried.both.low, rel=1e-9)
    assert power.interval.high == pytest.approx(carried.both.high, rel=1e-9)


def test_a_falling_function_exchanges_the_ends():
    critical = estimate_from_interval(1000, low=500, high=2000)

    steps = critical.through(lambda b: trade_off.steps_factor(from_batch=100, to_batch=1000, critical_batch=b))

    assert steps.statistical.value == pytest.approx(2 / 11)
    assert steps.statistical.low == pytest.approx(3 / 21)
    assert steps.statistical.high == pytest.approx(1.5 / 6)
    assert steps.model.low == steps.model.high == steps.model.value


def test_an_open_end_stays_open():
    critical = estimate_from_interval(1000, low=None, high=None)

    steps = critical.through(lambda b: trade_off.steps_factor(from_batch=100, to_batch=200, critical_batch=b))

    assert (critical.interval.low, critical.interval.high) == (0, math.inf)
    assert (steps.both.low, steps.both.high) == (0.5, 1)


def test_coverage_of_the_combined_interval_is_its_level():
    """The share of a normal error with both variances that the interval holds, by quadrature."""
    statistical, model = 0.3, 0.8
    quantile = 1.959964
    estimate = estimate_from_interval(
        1, low=math.exp(-quantile * statistical), high=math.exp(quantile * statistical), model_log_sd=model
    )

    deviates = estimate.error.up / math.hypot(statistical, model)

    assert math.erf(deviates / math.sqrt(2)) == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": 0.0}, "value must be positive and finite, got 0: an unresolved number"),
        ({"low": 2.0}, "value must lie between low and high, got 1 with low=2.0"),
        ({"high": 0.5}, "value must lie between low and high, got 1"),
        ({"model_log_sd": -1.0}, "model_log_sd must not be negative, got -1"),
        ({"level": 95.0}, "level must be between 0 and 1, both excluded, got 95"),
    ],
)
def test_an_interval_without_meaning_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        estimate_from_interval(**{"value": 1.0, "low": 0.5, "high": 2.0} | change)


def test_a_value_outside_its_interval_is_refused():
    with pytest.raises(ValueError, match=r"down must not be negative, got -0\.1"):
        LogError(-0.1, 1)
