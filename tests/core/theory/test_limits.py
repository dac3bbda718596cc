import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.advice.limited import sentence, why
from noisescale_core.theory import limits
from noisescale_core.theory.limits import Limit, LimitKind
from noisescale_core.theory.machines import round_to_feasible
from noisescale_core.theory.trade_off import TradeOff, best_batch, regret_at_price

RUN = TradeOff(min_steps=1000, min_examples=500_000, target="loss 2.5")
FREE = {"overhead_seconds": 0.2, "seconds_per_example": 0.001}


@given(factor=st.floats(1.001, 1e4))
def test_a_deadline_in_steps_is_met_exactly_at_the_smallest_batch_it_allows(factor):
    limit = limits.deadline_in_steps(RUN, max_steps=1000 * factor)

    assert RUN.steps(limit.low) == pytest.approx(1000 * factor)
    assert limit.high == math.inf


@given(factor=st.floats(1.001, 1e4))
def test_a_budget_of_examples_is_spent_exactly_at_the_largest_batch_it_allows(factor):
    limit = limits.budget_of_examples(RUN, max_examples=500_000 * factor)

    assert RUN.examples(limit.high) == pytest.approx(500_000 * factor)


def seconds(batch):
    return RUN.steps(batch) * (0.2 + 0.001 * batch)


@given(max_seconds=st.floats(1400, 1e8))
def test_a_deadline_in_seconds_is_met_exactly_at_both_ends(max_seconds):
    limit = limits.deadline_in_seconds(RUN, max_seconds=max_seconds, **FREE)

    assert seconds(limit.low) == pytest.approx(max_seconds)
    assert seconds(limit.high) == pytest.approx(max_seconds)
    assert limit.low < limit.high


def test_a_deadline_that_no_batch_meets_tells_the_least_hours_of_any():
    fastest = min(seconds(batch) for batch in range(1, 5000))

    limit = limits.deadline_in_seconds(RUN, max_seconds=0.99 * fastest, **FREE)

    assert not limit.is_possible
    assert limit.least == pytest.approx(fastest / 3600, rel=1e-4)


@pytest.mark.parametrize(
    ("limit", "possible"),
    [
        (limits.deadline_in_steps(RUN, max_steps=1000), "loss 2.5 takes more than 1,000 steps at any batch size"),
        (
            limits.budget_of_examples(RUN, max_examples=4e5),
            "loss 2.5 takes more than 500,000 examples at any batch size",
        ),
    ],
)
def test_what_is_impossible_says_what_is_possible(limit, possible):
    choice = limits.choose(500, [limit])

    assert choice.batch is None
    assert choice.binding == (limit,)
    assert possible in why(choice)


def test_limits_that_exclude_each_other_are_both_named():
    early = limits.deadline_in_steps(RUN, max_steps=1100)
    cheap = limits.budget_of_examples(RUN, max_examples=6e5)

    choice = limits.choose(500, [early, cheap])

    assert choice.batch is None
    assert choice.binding == (early, cheap)
    assert why(choice).startswith("These exclude each other: 1,100 steps need a batch of 5,000 or more. ")


@pytest.mark.parametrize(
    ("best", "batch", "kind"),
    [(50, 64, LimitKind.DEVICES), (300, 300, None), (9000, 2048, LimitKind.MEMORY)],
)
def test_the_limit_that_binds_is_named(best, batch, kind):
    bounds = [
        limits.every_device_busy(num_devices=64),
        limits.memory(max_examples_per_device=32, num_devices=64),
        limits.data_set(num_examples=60_000),
    ]

    choice = limits.choose(best, bounds)

    assert choice.batch == batch
    assert [limit.kind for limit in choice.binding] == ([] if kind is None else [kind])


@given(best=st.floats(1, 1e6), low=st.floats(1, 1e6), width=st.floats(1, 100), price=st.floats(1, 1e4))
def test_no_other_batch_inside_the_limits_costs_less(best, low, width, price):
    critical = best * best / price
    bound = Limit(LimitKind.DEVICES, low, low * width)

    choice = limits.choose(best, [bound])

    at = {"critical_batch": critical, "examples_per_step": price}
    others = [low * width ** (i / 20) for i in range(21)]
    least = min(regret_at_price(batch=other, **at) for other in others)
    assert regret_at_price(batch=choice.batch, **at) <= least * (1 + 1e-9) + 1e-12


def test_with_accumulation_memory_is_no_limit_and_without_limits_the_price_decides():
    free = limits.memory(max_examples_per_device=8, num_devices=8, max_micro_batches=None)

    four = limits.memory(max_examples_per_device=8, num_devices=8, max_micro_batches=4)

    assert four.high == 256
    assert limits.choose(1e6, [free]).batch == 1e6
    assert limits.choose(1e6, []).batch == 1e6


@given(
    critical=st.floats(1, 1e6),
    price=st.floats(1, 1e6),
    multiple=st.integers(1, 1000),
    powers=st.booleans(),
)
def test_rounding_finds_the_cheapest_feasible_batch(critical, price, multiple, powers):
    at = {"critical_batch": critical, "examples_per_step": price}

    rounded = round_to_feasible(**at, multiple_of=multiple, powers_of_two=powers)

    near = max(1, round(best_batch(**at) / multiple))
    counts = [2**k for k in range(22)] if powers else range(max(1, near - 3), near + 4)
    cheapest = min(regret_at_price(batch=n * multiple, **at) for n in counts)
    assert rounded.batch % multiple == 0
    assert rounded.regret == pytest.approx(cheapest, abs=1e-12)


def test_rounding_stays_inside_the_limits_or_says_how():
    at = {"critical_batch": 1000, "examples_per_step": 1000, "multiple_of": 64}

    assert round_to_feasible(**at, smallest=1100).batch == 1152
    assert round_to_feasible(**at, largest=900).batch == 896
    with pytest.raises(ValueError, match="multiple_of must have a multiple between 65 and 127, got 64: use fewer"):
        round_to_feasible(**at, smallest=65, largest=127)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (lambda: limits.deadline_in_steps(RUN, max_steps=0), "max_steps must be positive and finite, got 0: leave"),
        (lambda: limits.memory(max_examples_per_device=0, num_devices=8), "max_examples_per_device .* got 0: find"),
        (lambda: limits.memory(max_examples_per_device=1, num_devices=0), "num_devices .* got 0: count data-parallel"),
        (lambda: limits.choose(0, []), "best must be positive and finite, got 0: price the noise scale first"),
    ],
)
def test_a_limit_without_meaning_is_refused(limit, message):
    with pytest.raises(ValueError, match=message):
        limit()


@pytest.mark.parametrize("kind", LimitKind)
def test_every_kind_of_limit_has_its_words(kind):
    words = sentence(Limit(kind, 0.0, 64.0, asked=4.0, least=2.0, target="loss 2.5"), "image")

    assert kind.called
    assert kind.breaks.split()[0] in ("exceeds", "misses", "does")
    assert (kind.role is None) == (kind.unit == "") == (kind.quantity is None)
    assert words.endswith(".")
    assert "64" in words


@pytest.mark.parametrize("kind", [kind for kind in LimitKind if kind.role is not None])
def test_a_limit_of_the_plan_names_what_it_reaches_and_the_least_that_it_takes(kind):
    limit = Limit(kind, math.inf, 0.0, asked=4.0, least=12.5, target="loss 2.5")

    unit = kind.unit.format(example="image")
    assert sentence(limit, "image") == f"4 {unit} are too few: loss 2.5 takes more than 12.5 {unit} at any batch size."


def test_a_limit_of_whoever_sets_it_keeps_its_own_words():
    assert sentence(Limit(LimitKind.MEMORY, 0.0, 64.0, words="The largest batch is 64.")) == "The largest batch is 64."


def test_devices_that_are_added_with_the_batch_say_how_many_examples_each_takes():
    one, many = (limits.devices_at_most(num_devices=count, examples_per_device=2.5) for count in (1, 16))

    assert sentence(one, "image").startswith("1 device of 2.5 images each run a batch of 2.5 or less; ")
    assert sentence(many, "image").startswith("16 devices of 2.5 images each run a batch of 40 or less; ")
