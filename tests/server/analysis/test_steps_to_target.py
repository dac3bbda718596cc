"""Crossings and ladders of targets."""

import math
import random

import pytest

from noisescale_lab.sweep.trial import Curve
from noisescale_lab.sweep.trial import steps_to_target as crossing_in_a_job
from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.points.steps import Outcome
from noisescale_server.analysis.sweeps.steps_to_target.crossing import (
    Direction,
    MetricCurve,
    causal_mean,
    steps_to_target,
)
from noisescale_server.analysis.sweeps.steps_to_target.ladder import target_ladder


def falling(*values: float, steps=(10, 20, 40, 80)) -> MetricCurve:
    return MetricCurve(tuple(steps), values, Direction.MIN)


def test_a_power_of_the_step_is_crossed_exactly_and_keeps_its_evaluations():
    found = steps_to_target(falling(*(step**-0.5 for step in (10, 20, 40, 80))), 50**-0.5)

    assert found.outcome is Outcome.REACHED
    assert found.steps == pytest.approx(50)
    assert (found.low, found.high) == (40, 80)


def test_a_metric_that_is_not_positive_is_crossed_on_a_straight_line_in_log_steps():
    found = steps_to_target(falling(4.0, 3.0, 1.0, -1.0), 0.0)

    assert found.steps == pytest.approx(math.sqrt(40 * 80))


@pytest.mark.parametrize("goal", ["min", "max"])
def test_a_job_without_a_server_crosses_as_the_server_does(goal):
    rng = random.Random(1)
    for _ in range(200):
        steps = (rng.choice([0, 1]), *sorted(rng.sample(range(2, 2000), 40)))
        values = tuple((1 if goal == "min" else -1) * rng.gauss(0, 1) + (step + 1) ** -0.3 for step in steps)
        target = rng.uniform(-1, 1)

        here = steps_to_target(MetricCurve(tuple(map(float, steps)), values, Direction(goal)), target)
        there = crossing_in_a_job(Curve(0, steps, values), target, goal)

        assert there.steps == (None if here.steps is None else pytest.approx(here.steps))
        assert (there.low, there.high) == (here.low, here.high)


def test_a_score_crosses_upwards_and_only_the_first_crossing_counts():
    curve = MetricCurve((10, 20, 40, 80), (0.1, 0.9, 0.2, 0.95), Direction.MAX)

    assert steps_to_target(curve, 0.9).steps == pytest.approx(20)


def test_smoothing_looks_back_only_and_delays_a_lucky_evaluation():
    curve = falling(4.0, 1.0, 4.0, 1.0)

    assert causal_mean(curve.values, 2) == (4.0, 2.5, 2.5, 2.5)
    assert steps_to_target(curve, 1.5).high == 20
    assert steps_to_target(curve, 1.5, window=2).outcome is Outcome.NOT_REACHED


def test_a_run_that_ends_first_gives_a_bound():
    found = steps_to_target(falling(4.0, 3.0, 2.5, 2.2), 2.0)

    assert (found.outcome, found.low, found.high) == (Outcome.NOT_REACHED, 80, math.inf)


def test_a_run_that_diverges_says_nothing_unless_it_reached_the_target_before():
    diverged = falling(4.0, 3.0, math.nan, math.nan)

    assert steps_to_target(diverged, 2.0).outcome is Outcome.INFEASIBLE
    assert steps_to_target(diverged, 3.5).outcome is Outcome.REACHED


def test_a_target_that_the_first_evaluation_has_reached_is_known_from_above_only():
    found = steps_to_target(falling(4.0, 3.0, 2.0, 1.0), 5.0)

    assert (found.low, found.high) == (0, 10)


@pytest.mark.parametrize("steps", [(10, 10, 40, 80), (80, 40, 20, 10)])
def test_evaluations_out_of_order_are_an_error(steps):
    with pytest.raises(AnalysisError, match="must rise"):
        falling(4.0, 3.0, 2.0, 1.0, steps=steps)


def test_a_ladder_ends_at_what_every_run_reached():
    curves = [falling(4.0, 3.0, 2.0, 1.0), falling(4.0, 3.5, 2.5, 2.0)]

    targets = target_ladder(curves, num_targets=3)

    assert targets == pytest.approx((3.6, 2.8, 2.0))
    assert all(steps_to_target(curve, target).steps for curve in curves for target in targets)


def test_a_ladder_of_runs_that_do_not_improve_is_empty():
    assert target_ladder([falling(1.0, 2.0, 3.0, 4.0)]) == ()


@pytest.mark.parametrize(
    ("first", "last", "targets"),
    [
        (1.0, 1 / 3, (0.867, 0.734, 0.6, 0.467, 0.334)),
        (5000.0, 1777.7, (4360.0, 3720.0, 3070.0, 2430.0, 1780.0)),
        (1.0 + 1e-15, 1.0, None),
        (1e308, -1e308, None),
        (3e-320, 1e-320, None),
    ],
)
def test_targets_are_rounded_to_the_side_that_every_run_reached(
    first: float, last: float, targets: tuple[float, ...] | None
) -> None:
    for sign, direction in ((1.0, Direction.MIN), (-1.0, Direction.MAX)):
        found = target_ladder([MetricCurve((1.0, 2.0), (sign * first, sign * last), direction)])

        assert all(first >= sign * one >= last for one in found)
        assert targets is None or found == tuple(sign * one for one in targets)
