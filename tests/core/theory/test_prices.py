import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import prices
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.prices import ExchangeRate

positive = st.floats(1e-4, 1e4)
rates = st.one_of(
    positive.map(prices.worth_examples),
    st.floats(0.01, 0.99).map(prices.from_preference),
    st.tuples(positive, positive).map(lambda c: prices.from_costs(usd_per_step=c[0], usd_per_example=c[1])),
)


@given(rate=rates, critical=positive, units=st.floats(1, 1e6))
def test_counting_tokens_instead_of_sequences_changes_no_recommendation(rate, critical, units):
    in_sequences = rate.recommended_batch(estimate_from_interval(critical, low=critical / 2, high=critical * 3))
    in_tokens = rate.in_units(units).recommended_batch(
        estimate_from_interval(units * critical, low=units * critical / 2, high=units * critical * 3)
    )

    assert in_tokens.value == pytest.approx(units * in_sequences.value)
    assert in_tokens.interval.low == pytest.approx(units * in_sequences.interval.low)
    assert in_tokens.interval.high == pytest.approx(units * in_sequences.interval.high)


@given(critical=positive, step=positive, example=positive)
def test_prices_choose_the_cheapest_batch(critical, step, example):
    """The run's bill in USD, c_S S(B) + c_E E(B), on a grid around the recommendation."""
    rate = prices.from_costs(usd_per_step=step, usd_per_example=example)
    best = rate.recommended_batch(estimate_from_interval(critical, low=None, high=None)).value

    def bill(batch):
        return (step + example * batch) * (1 + critical / batch)

    bills = [bill(best * 10 ** (i / 25)) for i in range(-50, 51)]
    assert bills.index(min(bills)) == 50


def test_a_price_too_small_to_read_is_said_per_million():
    rate = prices.from_costs(usd_per_step=0.5, usd_per_example=4.979e-06)

    assert rate.said == "a step costs 0.5 USD and an example 4.979 USD per million"


def test_an_hour_sooner_is_priced_in_devices_that_each_take_their_share():
    """Simulated bill: n = B / m devices, each step takes t seconds whatever the batch."""
    critical, min_steps, examples_per_device, step_seconds = 4000.0, 1e4, 8.0, 0.5
    rate = prices.from_device_prices(
        usd_per_hour_sooner=40.0,
        usd_per_device_hour=2.0,
        step_seconds=step_seconds,
        examples_per_device_second=examples_per_device / step_seconds,
    )

    def bill(batch):
        hours = min_steps * (1 + critical / batch) * step_seconds / 3600
        return 40.0 * hours + 2.0 * hours * batch / examples_per_device

    best = min((bill(b), b) for b in range(50, 20_000, 5))[1]
    assert rate.examples_per_step == pytest.approx(160)
    assert rate.recommended_batch(estimate_from_interval(critical, low=None, high=None)).value == pytest.approx(
        best, rel=0.02
    )


def test_on_fixed_hardware_the_price_is_the_overhead_of_a_step_in_examples():
    critical = 900.0
    rate = prices.on_fixed_hardware(overhead_seconds=0.3, seconds_per_example=0.003)

    def seconds(batch):
        return (1 + critical / batch) * (0.3 + 0.003 * batch)

    fastest = min((seconds(b), b) for b in range(1, 3000))[1]
    assert rate.at(critical) == pytest.approx(100)
    assert fastest == 300


@pytest.mark.parametrize(("preference", "share"), [(0.5, 1), (0.2, 0.25), (0.8, 4)])
def test_a_preference_minimises_the_weighted_logarithms(preference, share):
    critical = 1000.0

    def weighted(batch):
        return preference * math.log(1 + critical / batch) + (1 - preference) * math.log(critical + batch)

    best = min((weighted(b), b) for b in range(10, 10_000, 5))[1]
    batch = prices.from_preference(preference).recommended_batch(estimate_from_interval(critical, low=None, high=None))
    assert batch.value == pytest.approx(share * critical)
    assert best == pytest.approx(share * critical, rel=0.02)


def test_a_preference_has_the_whole_log_error_of_b_crit_and_half_once_its_price_is_stated():
    critical = estimate_from_interval(1000, low=250, high=4000)
    preference = prices.from_preference(0.8)

    free = preference.recommended_batch(critical)
    stated = preference.stated_at(critical.value).recommended_batch(critical)

    assert free.value == pytest.approx(stated.value)
    assert free.error.up == pytest.approx(2 * stated.error.up)


def test_prices_say_what_was_said():
    assert prices.worth_examples(500).said == "a step saved is worth 500 examples"
    assert prices.from_preference(0.8).said == "1 % of the steps is worth 4 % of the examples"


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda: ExchangeRate("nothing"), "needs one of examples_per_step and preference"),
        (lambda: ExchangeRate("both", examples_per_step=1, preference=0.5), "needs one of"),
        (lambda: prices.worth_examples(0), "examples_per_step must be positive and finite, got 0"),
        (lambda: prices.from_preference(1), "preference must be between 0 and 1, both excluded, got 1"),
        (lambda: prices.from_costs(usd_per_step=1, usd_per_example=0), "usd_per_example must be .* got 0: use a pref"),
        (
            lambda: prices.on_fixed_hardware(overhead_seconds=0, seconds_per_example=1),
            "overhead_seconds must be .* got 0: steps without overhead are fastest at the smallest batch",
        ),
        (lambda: prices.worth_examples(5).at(0), "critical_batch must be .* got 0: an unresolved noise scale"),
    ],
)
def test_a_price_without_meaning_is_refused(say, message):
    with pytest.raises(ValueError, match=message):
        say()
