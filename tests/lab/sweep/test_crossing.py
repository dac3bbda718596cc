import math

import pytest

from noisescale_lab.sweep.trial import Curve, Setting, Trial, steps_to_target


def test_a_power_law_is_crossed_exactly_between_evaluations():
    curve = Curve(0, (10, 40, 160), tuple(step**-0.5 for step in (10, 40, 160)))

    found = steps_to_target(curve, 100**-0.5, "min")

    assert found.steps == pytest.approx(100.0)
    assert (found.low, found.high) == (40.0, 160.0)


def test_a_score_that_rises_is_crossed_upwards():
    found = steps_to_target(Curve(0, (0, 10, 20), (0.0, 0.5, 0.9)), 0.7, "max")

    assert (found.low, found.high) == (10.0, 20.0)
    assert 10 < found.steps < 20


def test_what_is_not_reached_is_beyond_the_last_evaluation():
    found = steps_to_target(Curve(0, (10, 20), (2.0, 1.0)), 0.5, "min")

    assert (found.steps, found.low, found.high) == (None, 20.0, math.inf)


def test_a_target_reached_at_the_first_evaluation_is_known_from_above_only():
    found = steps_to_target(Curve(0, (10, 20), (0.4, 0.3)), 0.5, "min")

    assert (found.steps, found.low, found.high) == (10.0, 0.0, 10.0)


def test_a_target_that_the_start_has_reached_takes_one_step_at_most():
    found = steps_to_target(Curve(0, (0, 10), (0.4, 0.3)), 0.5, "min")

    assert (found.steps, found.low, found.high) == (1.0, 0.0, 1.0)


def test_seeds_are_averaged_before_the_target_is_crossed():
    """One lucky seed crosses at once: crossing seed by seed would say 5 steps for it."""
    curves = (Curve(0, (5, 10, 15), (0.4, 0.4, 0.4)), Curve(1, (5, 10, 15), (1.0, 0.8, 0.5)))

    mean = Trial(Setting(8, 0.1), "complete", curves).mean_curve()

    assert mean.values == pytest.approx((0.7, 0.6, 0.45))
    assert steps_to_target(mean, 0.5, "min").low == 10.0
