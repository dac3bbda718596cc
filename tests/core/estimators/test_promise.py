"""Promises of updates, their sums over looks, and the share of them that came."""

import math
import random

import pytest

from noisescale_core.estimators.path import Path, Promised, at_half, between
from noisescale_core.estimators.promise import (
    KeptShare,
    LossMoment,
    PromiseMoment,
    kept_share,
    promised_fall,
    scale_of,
    signal_of_one,
    stretch_of_promises,
)


def test_a_plain_step_promises_the_rate_times_the_squared_gradient():
    assert promised_fall(rate=0.1, past=0.0, scale=1.0, signal=3.0) == pytest.approx(0.3)


def test_what_momentum_remembers_is_added():
    assert promised_fall(rate=0.1, past=0.2, scale=1.0, signal=3.0) == pytest.approx(0.5)


def test_a_gradient_clipped_to_half_makes_half_of_the_step_and_the_past_is_held_against_the_whole_gradient():
    """past = ε a · c ḡ, and the promise is ε a · ḡ + c ε |G|²."""
    scale = scale_of(5.0 / 4, 5.0)

    assert scale == 0.5
    assert promised_fall(rate=0.1, past=0.1, scale=scale, signal=3.0) == pytest.approx(0.2 + 0.15)


@pytest.mark.parametrize(("given", "big"), [(0.0, 1.0), (1.0, 0.0), (math.inf, 1.0), (1.0, math.nan)])
def test_without_a_gradient_or_with_one_that_is_not_finite_nothing_is_told(given, big):
    assert scale_of(given, big) is None


@pytest.mark.parametrize("share", [0.125, 0.5, 0.9])
def test_one_small_batch_takes_the_noise_off(share):
    """|G|² = 2 and tr(Σ) / N = 3."""
    assert signal_of_one(2 + 3, share**2 * (2 + 3 / share), share) == pytest.approx(2.0)


def test_updates_between_two_looks_count_as_the_mean_of_both():
    assert stretch_of_promises(before=None, now=2.0, num_between=0) == Promised(1, 2.0, 0.0)
    assert stretch_of_promises(before=1.0, now=3.0, num_between=4) == Promised(5, 3.0 + 4 * 2.0, 25 * 2.0)


def test_the_variance_of_a_sum_of_noisy_looks_is_what_it_is_off():
    rng = random.Random(0)
    errors, stated = [], []
    for _ in range(400):
        looks, total, variance, last = range(0, 321, 16), 0.0, 0.0, None
        for at in looks:
            now = 1.0 + at / 320 + rng.gauss(0, 0.8)
            new = stretch_of_promises(before=last, now=now, num_between=0 if last is None else 15)
            total, variance, last = total + new.total, variance + new.variance, now
        errors.append(total - sum(1.0 + step / 320 for step in range(321)))
        stated.append(variance)

    rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert abs(sum(errors)) / len(errors) < 4 * rms / 20
    assert rms == pytest.approx(math.sqrt(sum(stated) / len(stated)), rel=0.1)


def moments(*, share=0.5, noise=0.0, error=0.0, num_steps=400, every=8, logged=True, told=True, seed=0):
    """A loss that falls by a share of 0.01 a step; news of the promise at every so many steps."""
    rng, total, losses = random.Random(seed), 0.0, [LossMoment(0, 0, 0.0)]
    for step in range(1, num_steps + 1):
        total += 9.0 - share * 0.01 * step + rng.gauss(0, noise)
        losses.append(LossMoment(step, step * logged, total * logged))
    known = range(every, num_steps + 1, every) if told else ()
    return losses, [PromiseMoment(step, Promised(step, 0.01 * step, step * error**2)) for step in known]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, -0.2])
def test_the_share_is_that_of_the_fall_between_the_middles_of_both_ends(share):
    found = kept_share(*moments(share=share))

    assert isinstance(found, KeptShare)
    assert found.value == pytest.approx(share, rel=1e-6)
    assert found.sd == pytest.approx(0.0, abs=1e-6)


def test_a_promise_that_comes_in_lumps_is_of_the_steps_before_each():
    assert kept_share(*moments(every=32)).value == pytest.approx(0.5, rel=1e-6)


def test_the_stated_error_of_a_share_is_what_it_is_off():
    found = [kept_share(*moments(noise=0.3, error=0.002, seed=seed)) for seed in range(200)]

    off = math.sqrt(sum((one.value - 0.5) ** 2 for one in found) / len(found))
    # what the promise is off by is not drawn here, and its part of the stated error is small
    assert off == pytest.approx(math.sqrt(sum(one.sd**2 for one in found) / len(found)), rel=0.15)
    inside = sum(one.low <= 0.5 <= one.high for one in found) / len(found)
    assert inside > 0.9


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (([], []), "no_promise"),
        (moments(told=False), "no_promise"),
        (moments(every=300), "too_few"),
        (moments(logged=False), "no_loss"),
        (moments(num_steps=20, every=2), "too_few"),
        (moments(noise=20.0), "too_noisy"),
        (moments(error=1.0), "too_noisy"),
    ],
)
def test_where_losses_or_promises_say_too_little_that_is_said(given, why):
    assert kept_share(*given) == why


def test_half_of_a_path_knows_what_was_promised_by_then():
    paths = [Path(n, n, 0.0, n, promised=Promised(n, 0.1 * n, 0.01 * n)) for n in (40.0, 52.0)]

    assert at_half(paths, Path(100.0, 100.0, 0.0, 100.0)).promised == pytest.approx(Promised(50.0, 5.0, 0.5))
    assert between(Promised(), Promised(4, 2.0, 1.0), 0.25) == Promised(1, 0.5, 0.25)
