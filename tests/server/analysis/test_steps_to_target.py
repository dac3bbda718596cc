"""Crossings, ladders of targets and the best learning rate of a grid."""

import math

import pytest

from noisescale_server.analysis.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.batch_sweep.lack_of_fit import Finding
from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.steps_to_target.best_of_grid import Trial, best_of_grid
from noisescale_server.analysis.steps_to_target.crossing import Direction, MetricCurve, causal_mean, steps_to_target
from noisescale_server.analysis.steps_to_target.ladder import target_ladder
from noisescale_server.analysis.steps_to_target.steps import Outcome, StepsToTarget


def falling(*values: float, steps=(10, 20, 40, 80)) -> MetricCurve:
    return MetricCurve(tuple(steps), values, Direction.MIN)


def test_a_crossing_is_interpolated_in_log_steps_and_keeps_its_evaluations():
    found = steps_to_target(falling(4.0, 3.0, 2.0, 1.0), 1.5)

    assert found.outcome is Outcome.REACHED
    assert found.steps == pytest.approx(math.sqrt(40 * 80))
    assert (found.low, found.high) == (40, 80)


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


def trials(batch_size: float, steps: dict[float, StepsToTarget]) -> list[Trial]:
    return [Trial(batch_size, rate, found) for rate, found in steps.items()]


def test_the_best_learning_rate_is_taken_and_an_edge_of_the_grid_is_marked():
    inside = trials(64, {0.1: StepsToTarget.at(900), 0.2: StepsToTarget.at(500), 0.4: StepsToTarget.never()})
    edge = trials(256, {0.1: StepsToTarget.at(900), 0.2: StepsToTarget.at(500), 0.4: StepsToTarget.at(300)})

    small, large = best_of_grid([*inside, *edge])

    assert math.exp(small.repeats.mean_log_steps) == pytest.approx(500)
    assert not small.is_at_grid_edge
    assert math.exp(large.repeats.mean_log_steps) == pytest.approx(300)
    assert large.is_at_grid_edge


def test_one_lucky_run_does_not_make_a_learning_rate_the_best():
    lucky = [Trial(64, 0.4, StepsToTarget.at(200)), *(Trial(64, 0.4, StepsToTarget.never()) for _ in range(3))]

    [point] = best_of_grid([*lucky, Trial(64, 0.2, StepsToTarget.at(500)), Trial(64, 0.1, StepsToTarget.at(900))])

    assert math.exp(point.repeats.mean_log_steps) == pytest.approx(500)


def test_a_batch_size_that_never_arrived_is_a_bound_and_one_that_always_diverged_is_left_out():
    bound = trials(16, {0.1: StepsToTarget.beyond(1000), 0.2: StepsToTarget.beyond(2000)})
    gone = trials(64, {0.1: StepsToTarget.never()})

    [point] = best_of_grid([*bound, *gone])

    assert (point.batch_size, point.repeats, point.censored) == (16, None, ((2000, math.inf),))


def test_a_grid_too_narrow_for_large_batches_is_found_by_the_fit():
    """The best rate grows with the batch here and leaves the grid at the two largest."""
    grid = []
    for batch_size in (16, 64, 256, 1024, 4096):
        best_rate = batch_size / (1 + batch_size / 256)
        for rate in (4, 8, 16, 32, 64, 128):
            loss = 1 + 0.3 * math.log(rate / best_rate) ** 2
            grid.append(Trial(batch_size, rate, StepsToTarget.at(1000 * (1 + 256 / batch_size) * loss)))

    fit = fit_sweep(best_of_grid(grid))

    assert Finding.GRID_EDGE in fit.lack_of_fit.findings
    assert 4096 in fit.lack_of_fit.grid_edge_batch_sizes
