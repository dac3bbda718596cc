"""Whether larger batches end worse: against planted differences."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.sweeps.large_batch_quality import qualities
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, Trial, settings_of

LEVEL = 0.95


def runs(rng, batch_size, floor, *, seeds=5, scatter=0.02, evaluations=12, last=200, lr=0.1, rise=0.5) -> list[Trial]:
    """Runs that fall to a floor, with noise of their own at every evaluation and a rise at the end."""
    steps = tuple(map(float, np.unique(np.linspace(1, last, evaluations).round())))
    found = []
    for seed in range(seeds):
        noise = scatter * rng.standard_normal(len(steps))
        values = [floor + math.exp(-step / 10) + one for step, one in zip(steps, noise, strict=True)]
        found.append(Trial(batch_size, lr, seed, MetricCurve(steps, (*values[:-1], values[-1] + rise), Direction.MIN)))
    return found


def compared(*trials: Trial) -> dict:
    return {one.budget: one for one in qualities(settings_of(trials), level=LEVEL)}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(("budget", "rise"), [("equal_steps", 0.0), ("equal_examples", 0.0), ("large_budget", 0.5)])
def test_the_interval_holds_the_planted_difference_in_95_of_100_sweeps(budget, rise):
    rng, held, sweeps = np.random.default_rng(0), 0, 300
    for _ in range(sweeps):
        found = compared(*runs(rng, 8, 0.5, rise=rise), *runs(rng, 16, 0.53, rise=rise))
        difference = found[budget].points[1].difference
        held += difference.low <= 0.03 <= difference.high

    assert held / sweeps == pytest.approx(0.95, abs=5 * math.sqrt(0.95 * 0.05 / sweeps))


def test_a_batch_size_that_was_looked_at_more_often_is_not_called_better_for_that():
    """The best of many noisy evaluations is lower than the best of a few, if each seed's own best is taken."""
    rng, verdicts = np.random.default_rng(1), []
    for _ in range(200):
        found = compared(*runs(rng, 8, 0.5, evaluations=12), *runs(rng, 16, 0.5, evaluations=60))
        verdicts.append(found["large_budget"].verdict)

    assert verdicts.count("better") / len(verdicts) <= 0.15
    assert verdicts.count("worse") / len(verdicts) <= 0.05


def power_law(batch_size: float, steps: tuple[float, ...]) -> list[Trial]:
    """Runs whose loss is that of the examples seen, and of nothing else."""
    values = tuple((batch_size * step) ** -0.5 for step in steps)
    return [Trial(batch_size, 0.1, seed, MetricCurve(steps, values, Direction.MIN)) for seed in range(3)]


def test_between_evaluations_the_metric_is_interpolated():
    small, large = power_law(8, (100.0, 200.0, 400.0)), power_law(32, (40.0, 80.0, 110.0))

    found = compared(*small, *large)["equal_examples"]

    assert found.at == 3200
    assert found.points[1].difference.value == pytest.approx(0, abs=0.01 * found.points[0].mean)


def test_a_setting_with_a_diverged_seed_is_not_the_best_of_its_batch_size():
    rng = np.random.default_rng(2)
    lucky = runs(rng, 16, 0.1, lr=0.4)[:3]

    found = compared(*runs(rng, 8, 0.5), *runs(rng, 16, 0.5), *lucky, Trial(16, 0.4, 3, None))

    assert [point.lr for point in found["equal_steps"].points] == [0.1, 0.1]


def test_a_batch_size_that_always_diverged_leaves_nothing_to_compare():
    rng = np.random.default_rng(3)

    assert qualities(settings_of([*runs(rng, 8, 0.5), Trial(64, 0.1, 0, None)]), level=LEVEL) == ()


def test_runs_that_share_no_stretch_of_steps_count_as_one_seed():
    curves = [
        MetricCurve((float(shift), 10.0 + shift, 20.0 + shift), (3.0, 2.0, 2.5), Direction.MIN) for shift in (1, 40)
    ]
    odd = Setting(16, 0.1, tuple(Trial(16, 0.1, seed, curve) for seed, curve in enumerate(curves)))
    rng = np.random.default_rng(4)

    found = qualities([*settings_of(runs(rng, 8, 0.5, last=20)), odd], level=LEVEL)

    assert found[0].points[1].num_seeds == 1
    assert found[0].verdict == "open"
