import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import schedule
from noisescale_core.theory.schedule import Outcome, Stretch

stretch = st.builds(Stretch, ideal_steps=st.floats(0.1, 1e4), noise_scale=st.floats(1, 1e5))
profiles = st.lists(stretch, min_size=1, max_size=12)


def growing(noise_scale_at, ideal_steps=1000, num_parts=5_000):
    """A profile by the midpoint rule."""
    width = ideal_steps / num_parts
    return [Stretch(width, noise_scale_at((i + 0.5) * width)) for i in range(num_parts)]


def at_scheduled_batches(profile, price):
    """What B = √(r φ) takes."""
    batches = [schedule.scheduled_batch(noise_scale=part.noise_scale, examples_per_step=price) for part in profile]
    return schedule.outcome(profile, batches)


def test_gamma_of_ten_times_the_square_root_of_s_is_096():
    """McCandlish et al. 2018, appendix D: SVHN, φ = 10 √s."""
    assert schedule.gamma(growing(lambda s: 10 * math.sqrt(s))) == pytest.approx(0.96, abs=1e-4)


@pytest.mark.parametrize(("exponent", "expected"), [(0, 1), (1, 0.889), (2, 0.75)])
def test_gamma_of_power_growth_is_its_integral(exponent, expected):
    of_theory = (1 + exponent) / (1 + exponent / 2) ** 2

    assert of_theory == pytest.approx(expected, abs=5e-4)
    assert schedule.gamma(growing(lambda s: s**exponent)) == pytest.approx(of_theory, abs=1e-4)


@pytest.mark.parametrize(("growth", "expected"), [(1, 1), (10, 0.902), (100, 0.711), (0.1, 0.902)])
def test_gamma_of_exponential_growth_is_its_integral(growth, expected):
    quarter = math.log(growth) / 4
    of_theory = math.tanh(quarter) / quarter if quarter else 1.0

    assert of_theory == pytest.approx(expected, abs=5e-4)
    assert schedule.gamma(growing(lambda s: growth ** (s / 1000))) == pytest.approx(of_theory, abs=1e-4)


@given(profile=profiles)
def test_gamma_is_at_most_one_and_one_for_a_constant_noise_scale(profile):
    constant = [Stretch(part.ideal_steps, 300.0) for part in profile]

    assert 0 < schedule.gamma(profile) <= 1
    assert schedule.gamma(constant) == pytest.approx(1)


@given(profile=profiles, batch=st.floats(1, 1e5))
def test_a_constant_batch_follows_the_hyperbola_whatever_the_profile(profile, batch):
    trade_off = schedule.trade_off_of(profile, target="its end")

    found = schedule.outcome(profile, [batch] * len(profile))

    assert found.steps == pytest.approx(trade_off.steps(batch))
    assert found.examples == pytest.approx(trade_off.examples(batch))


@given(profile=profiles, price=st.floats(1, 1e5))
def test_the_best_schedule_lies_on_its_own_hyperbola(profile, price):
    found = at_scheduled_batches(profile, price)

    trade_off = schedule.trade_off_of(profile, target="its end")
    excess = (found.steps / trade_off.min_steps - 1) * (found.examples / trade_off.min_examples - 1)
    assert excess == pytest.approx(schedule.gamma(profile), rel=1e-4)


@given(profile=profiles, price=st.floats(1, 1e5), part=st.integers(0, 11), factor=st.sampled_from([0.5, 0.9, 1.1, 2]))
def test_no_change_of_the_schedule_costs_less(profile, price, part, factor):
    batches = [schedule.scheduled_batch(noise_scale=part.noise_scale, examples_per_step=price) for part in profile]
    changed = [b * factor if i == part % len(batches) else b for i, b in enumerate(batches)]

    best = at_scheduled_batches(profile, price).cost(price)

    assert best <= schedule.outcome(profile, changed).cost(price) * (1 + 1e-12)


@given(profile=profiles, price=st.floats(0.1, 1e6))
def test_the_saving_is_what_the_schedule_takes_off_the_best_constant_batch(profile, price):
    trade_off = schedule.trade_off_of(profile, target="its end")
    constant = (math.sqrt(price * trade_off.min_steps) + math.sqrt(trade_off.min_examples)) ** 2
    scheduled = at_scheduled_batches(profile, price).cost(price)

    found = schedule.saving(gamma=schedule.gamma(profile), balance=price / trade_off.critical_batch)

    assert found == pytest.approx(1 - scheduled / constant, abs=1e-9)


@pytest.mark.parametrize(("gamma", "expected"), [(1, 0), (0.96, 0.0101), (0.902, 0.0251), (0.711, 0.0784)])
def test_the_balanced_saving_is_small(gamma, expected):
    assert schedule.saving(gamma=gamma) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Stretch(0, 10), "ideal_steps must be positive and finite, got 0: leave out"),
        (lambda: Stretch(1, math.inf), "noise_scale must be finite, got inf"),
        (lambda: schedule.gamma([]), "profile must not be empty: give the noise scale over the run"),
        (lambda: schedule.outcome([Stretch(1, 1)], []), "batches must be one for each stretch, got 0 for 1"),
        (lambda: schedule.outcome([Stretch(1, 1)], [0]), "batch must be positive"),
        (lambda: schedule.scheduled_batch(noise_scale=0, examples_per_step=1), "noise_scale must be positive"),
        (lambda: Outcome(1, 1).cost(0), "examples_per_step must be positive and finite, got 0: say what a step"),
        (lambda: schedule.saving(gamma=1.1), "gamma must lie above 0 and not above 1, got 1.1"),
    ],
)
def test_a_schedule_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
