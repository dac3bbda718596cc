import math
import random

import pytest

from noisescale_lab.branch.comparison import Verdict, compare
from noisescale_lab.branch.plan import Arm
from noisescale_lab.branch.result import ArmResult, local_critical_batch


def arm(batch_size, *losses):
    return ArmResult(Arm(batch_size, 0.1, 10), losses, 1.0)


def test_the_limits_are_those_of_the_paired_t_test():
    """Differences 0.1, 0.2, 0.3: mean 0.2, standard error 0.1 / √3, and t at 95 % with 2 degrees is 2.920."""
    found = compare([1.1, 2.2, 3.3], [1.0, 2.0, 3.0], margin=0.01, level=0.95)

    half = 2.919986 * 0.1 / math.sqrt(3)
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half), rel=1e-6)
    assert found.verdict is Verdict.WORSE


def test_what_makes_a_batch_hard_cancels_between_the_arms():
    hardness = [0.5, 3.0, 1.2, 7.7]

    found = compare([h + 0.005 for h in hardness], hardness, margin=0.01, level=0.95)

    assert found.verdict is Verdict.AS_GOOD


def test_noise_around_the_margin_is_open():
    assert compare([1.2, 0.9, 1.0], [1.0, 1.0, 1.0], margin=0.01, level=0.95).verdict is Verdict.OPEN


def test_an_arm_that_is_worse_by_the_margin_passes_as_good_in_at_most_five_percent():
    """The level holds at the border: 4,000 pairs of arms, differing by exactly the margin, 5 standard errors."""
    rng, passed, trials = random.Random(1), 0, 4_000
    for _ in range(trials):
        others = [rng.gauss(2, 1) for _ in range(12)]
        losses = [other + 0.01 + rng.gauss(0, 0.02) for other in others]
        passed += compare(losses, others, margin=0.01, level=0.95).verdict is Verdict.AS_GOOD

    assert abs(passed / trials - 0.05) < 5 * math.sqrt(0.05 * 0.95 / trials)


def test_divergence_is_worse_than_any_loss_and_nothing_is_said_of_two():
    nan = math.nan

    assert compare([nan, 1.0], [1.0, 1.0], margin=0.01, level=0.95).verdict is Verdict.WORSE
    assert compare([1.0, 1.0], [nan, 1.0], margin=0.01, level=0.95).verdict is Verdict.AS_GOOD
    assert compare([nan, 1.0], [nan, 1.0], margin=0.01, level=0.95).verdict is Verdict.OPEN


def test_the_local_critical_batch_lies_between_the_last_that_is_as_good_and_the_first_that_is_worse():
    arms = [arm(32, 1.0, 2.0, 3.0), arm(8, 1.0, 2.0, 3.0), arm(16, 1.001, 2.001, 3.002), arm(64, 1.2, 2.2, 3.3)]

    found = local_critical_batch(arms, margin=0.01, level=0.95)

    assert (found.low, found.high) == (32, 64)


def test_a_batch_that_only_matches_a_bad_smaller_one_is_not_as_good():
    """Slow loss of quality over many sizes: each is as good as its neighbour, the last is worse than the first."""
    arms = [arm(8, 1.0, 2.0), arm(16, 1.008, 2.008), arm(32, 1.016, 2.016)]

    found = local_critical_batch(arms, margin=0.01, level=0.95)

    assert (found.low, found.high) == (16, 32)


def test_noise_is_neither():
    arms = [arm(8, 1.0, 2.0, 3.0), arm(16, 1.3, 1.8, 3.0)]

    found = local_critical_batch(arms, margin=0.01, level=0.95)

    assert (found.low, found.high) == (None, None)


def test_an_open_batch_between_does_not_hide_that_a_larger_one_is_as_good_as_all():
    arms = [arm(8, 1.0, 2.0, 3.0), arm(16, 1.3, 1.8, 3.0), arm(32, 0.5, 0.9, 2.0)]

    found = local_critical_batch(arms, margin=0.01, level=0.95)

    assert (found.low, found.high) == (32, None)
