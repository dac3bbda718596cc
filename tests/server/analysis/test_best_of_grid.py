"""The best learning rate of each batch size, from the metric of every run."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import target_answer
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import Finding
from noisescale_server.analysis.sweeps.points.steps import Outcome
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import as_sweep_point, best_of_grid
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import seed_average
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, settings_of
from synthetic_grids import TARGET, GridSetting, findings, trial


def grid(batch_size: float, steps: dict[float, float | None]) -> list:
    return [trial(batch_size, lr, wanted) for lr, wanted in steps.items()]


def test_the_best_learning_rate_is_taken_and_an_edge_of_the_grid_is_marked():
    inside = grid(64, {0.1: 900, 0.2: 500, 0.4: None})
    edge = grid(256, {0.1: 900, 0.2: 500, 0.4: 300})

    small, large = best_of_grid(settings_of([*inside, *edge]), TARGET)

    assert (small.lr, small.num_learning_rates, small.is_at_grid_edge) == (0.2, 3, False)
    assert small.average.steps.steps == pytest.approx(500)
    assert (large.lr, large.is_at_grid_edge) == (0.4, True)
    assert large.average.steps.steps == pytest.approx(300)


def test_a_rate_at_which_one_seed_diverged_is_not_the_best():
    """The mean over its seeds is not a number, and the seeds that went well are the lucky ones."""
    lucky = [trial(64, 0.4, 200, seed=0), trial(64, 0.4, None, seed=1)]

    [point] = best_of_grid(settings_of([*lucky, *grid(64, {0.2: 500, 0.1: 900})]), TARGET)

    assert point.lr == 0.2
    assert not point.is_at_grid_edge


def test_a_batch_size_that_never_arrived_is_a_bound_and_one_that_always_diverged_is_left_out():
    bound = grid(16, {0.1: 40_000, 0.2: 30_000})
    gone = grid(64, {0.1: None})

    [point] = best_of_grid(settings_of([*bound, *gone]), TARGET)

    assert (point.batch_size, point.lr) == (16, 0.2)
    [(low, high)] = as_sweep_point(point).censored
    assert (low > 10_000, high) == (True, math.inf)


def test_seeds_scatter_as_their_own_crossings_do():
    """Of a power law the leave-one-out steps tell the scatter of single seeds, 0.05 in log steps."""
    logs = [-0.07, -0.03, 0.0, 0.02, 0.08]
    [point] = best_of_grid(
        settings_of(trial(64, 0.1, 500 * math.exp(value), seed=k) for k, value in enumerate(logs)), TARGET
    )

    repeats = point.average.repeats

    expected = sum((value - sum(logs) / 5) ** 2 for value in logs)
    assert repeats.squares == pytest.approx(expected, rel=0.05)


def test_seeds_that_were_evaluated_at_shifted_steps_all_count():
    """On a power law what lies between two evaluations is known exactly: so is the crossing of the average."""
    shifted = [trial(64, 0.1, 500, seed=place, shift=shift) for place, shift in enumerate((0.0, 3.5, 7.25))]
    aligned = [trial(64, 0.1, 500, seed=place) for place in range(3)]

    [found] = best_of_grid((Setting(64, 0.1, tuple(shifted)),), TARGET)
    [expected] = best_of_grid((Setting(64, 0.1, tuple(aligned)),), TARGET)

    assert found.average.num_seeds == expected.average.num_seeds == 3
    assert found.average.steps.steps == pytest.approx(expected.average.steps.steps, rel=1e-4)


def test_seeds_that_share_only_their_first_step_all_count_where_they_reach_the_target():
    first = MetricCurve((0, 10, 20, 30), (1.0, 0.5, 0.3, 0.2), Direction.MIN)
    second = MetricCurve((0, 14, 24, 30.5), (1.0, 0.45, 0.28, 0.2), Direction.MIN)

    found = seed_average([first, second], 0.25)

    assert (found.num_seeds, found.steps.outcome) == (2, Outcome.REACHED)
    assert 20 < found.steps.steps < 30


def test_seeds_that_were_never_evaluated_at_the_same_time_are_not_averaged():
    early = MetricCurve((10, 20), (1.0, 0.5), Direction.MIN)
    late = MetricCurve((30, 40), (0.4, 0.3), Direction.MIN)

    assert seed_average([early, late], 0.25).num_seeds == 1


def test_a_grid_too_narrow_for_large_batches_is_found_by_the_fit():
    """The best rate grows with the batch here and leaves the grid at the two largest."""
    trials = []
    for batch_size in (16, 64, 256, 1024, 4096):
        best_rate = batch_size / (1 + batch_size / 256)
        for rate in (4, 8, 16, 32, 64, 128):
            loss = 1 + 0.3 * math.log(rate / best_rate) ** 2
            trials.append(trial(batch_size, rate, 400 * (1 + 256 / batch_size) * loss))

    fit = target_answer(settings_of(trials), TARGET, level=0.95).outcome

    assert Finding.GRID_EDGE in fit.lack_of_fit.findings
    assert 4096 in fit.lack_of_fit.grid_edge_batch_sizes


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    "setting",
    [GridSetting(beyond=1), GridSetting(beyond=1, seeds=1), GridSetting(beyond=1, valley=0.05)],
    ids=["repeats", "single runs", "a flat optimum"],
)
def test_a_grid_that_ends_too_early_is_found_in_8_of_10_sweeps(setting):
    found = findings(setting, sweeps=40, seed=2)

    assert np.mean([Finding.GRID_EDGE in one for one in found]) >= 0.8


@pytest.mark.slow
@pytest.mark.thorough
def test_a_grid_that_goes_far_enough_is_seldom_suspected():
    found = findings(GridSetting(beyond=-2), sweeps=40, seed=3)

    assert np.mean([Finding.GRID_EDGE in one for one in found]) <= 0.05


def test_a_sweep_that_has_not_changed_is_fitted_once(monkeypatch):
    fitted = []
    monkeypatch.setattr(
        "noisescale_server.analysis.sweeps.batch_sweep.target_answer.fit_sweep",
        lambda points, level: fitted.append(points) or fit_sweep(points, level=level),
    )
    trials = [trial(size, 0.1, 417 * (1 + 256 / size), seed=seed) for size in (16, 64, 256, 1024) for seed in range(3)]

    first, second = (target_answer(settings_of(trials), TARGET, level=0.95) for _ in range(2))
    other = target_answer(settings_of([*trials, trial(4096, 0.1, 443)]), TARGET, level=0.95)

    assert first == second
    assert len(fitted) == 2
    assert len(other.points) == 5
