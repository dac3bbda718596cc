"""κ at three levels: its interval must hold what comes next, for a task with few measurements and for none."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from noisescale_server.analysis.calibration.kappa import BETWEEN_RUNS, BETWEEN_TASKS, PUBLISHED
from noisescale_server.analysis.calibration.levels import Levels, Observation, Spread, next_of_task, next_run
from quick import quick_or_slow

Generator = np.random.Generator
TASKS, RUNS = BETWEEN_TASKS.median, BETWEEN_RUNS.median
KNOWN = Spread(median=0.4, log_sd=1e-9)
"""A spread that is known exactly."""


def sweep(rng: Generator, task: float, runs: float, *, num_runs: int) -> Observation:
    """A sweep of a task: B_crit with an error, and the noise scale of some runs."""
    values = task + runs * rng.standard_normal(num_runs)
    mean = float(values.mean()) + 0.15 * rng.standard_normal()
    return Observation(mean, mean, 0.15, num_runs, float(((values - values.mean()) ** 2).sum()))


def coverage(level: str, count: int, *, num_runs: int, trials: int, between: tuple[float, float] | None) -> float:
    """How often the 95 % interval holds the next run's value; with spreads drawn from the prior, or these."""
    rng = np.random.default_rng([count, num_runs, level == "task"])
    hits = 0
    for _ in range(trials):
        drawn = (
            BETWEEN_TASKS.median * math.exp(BETWEEN_TASKS.log_sd * rng.standard_normal()),
            BETWEEN_RUNS.median * math.exp(BETWEEN_RUNS.log_sd * rng.standard_normal()),
        )
        tasks, runs = between or drawn
        family = PUBLISHED.mean + PUBLISHED.sd * rng.standard_normal()
        task, *others = family + tasks * rng.standard_normal(count + 1)
        own = [sweep(rng, task, runs, num_runs=num_runs) for _ in range(count)] if level == "task" else []
        rest = [] if own else [[sweep(rng, other, runs, num_runs=num_runs)] for other in others]
        found = next_run(own, rest, PUBLISHED)
        truth = task + runs * rng.standard_normal()
        hits += abs(truth - found.mean) < norm.ppf(0.975) * found.sd
    return hits / trials


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("count", quick_or_slow([1, 2, 3, 10], [1]))
@pytest.mark.parametrize("level", ["task", "family"])
def test_the_interval_of_the_next_run_holds_it_where_the_spreads_are_as_the_prior_says(level: str, count: int) -> None:
    found = coverage(level, count, num_runs=3, trials=80, between=None)

    assert abs(found - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 80)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("level", ["task", "family"])
def test_it_holds_it_at_the_typical_spreads_too(level: str, count: int) -> None:
    found = coverage(level, count, num_runs=3, trials=250, between=(TASKS, RUNS))

    assert found > 0.95 - 5 * math.sqrt(0.95 * 0.05 / 250)


@pytest.mark.slow
@pytest.mark.parametrize("num_runs", [1, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("level", ["task", "family"])
def test_over_many_families_it_holds_in_95_of_100(level: str, count: int, num_runs: int) -> None:
    found = coverage(level, count, num_runs=num_runs, trials=400, between=None)

    assert abs(found - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("level", ["task", "family"])
def test_spreads_nearly_twice_the_typical_ones_cost_a_few_points_and_no_more(level: str, count: int) -> None:
    found = coverage(level, count, num_runs=5, trials=250, between=(1.8 * TASKS, 1.7 * RUNS))

    assert found > 0.85


def test_with_known_spreads_the_next_run_is_the_textbook_normal() -> None:
    levels = Levels(mean=0.3, sd=1.5, between_tasks=KNOWN, between_runs=KNOWN)
    own, other = Observation(0.9, 0.9, 0.2), Observation(-0.5, -0.5, 0.1)

    found = next_run([own], [[other]], levels)

    # (task, own, other) is normal: condition on the two
    covariance = np.array([[1.5**2 + 0.16 + 0.16 + 0.04, 1.5**2], [1.5**2, 1.5**2 + 0.16 + 0.16 + 0.01]])
    with_task = np.array([1.5**2 + 0.16, 1.5**2])
    weights = np.linalg.solve(covariance, with_task)
    mean = 0.3 + weights @ np.array([0.6, -0.8])
    sd = math.sqrt(1.5**2 + 0.16 - weights @ with_task + 0.16)
    assert found.mean == pytest.approx(mean, abs=0.003)
    assert found.sd == pytest.approx(sd, rel=0.01)


def test_the_mean_of_several_runs_averages_what_runs_differ_by_and_not_the_error_of_the_critical_batch() -> None:
    found = next_of_task([Observation(1.0, 1.0, 0.3, num_runs=4)], mean=0.0, sd=20.0, between_runs=KNOWN)

    assert found.mean == pytest.approx(1.0, abs=0.003)
    assert found.sd == pytest.approx(math.sqrt(0.3**2 + 0.4**2 / 4 + 0.4**2), rel=0.01)


def test_an_interval_says_what_an_integral_over_it_says() -> None:
    value = np.linspace(-7, 7, 1_401)
    task, run = value[:, None], value[None, :]
    inside = norm.cdf((0.8 - task) / 0.4) - norm.cdf((0.1 - task) / 0.4)
    density = (norm.pdf(task) * inside * norm.pdf(run, task, 0.4)).sum(axis=0)
    share = np.cumsum(density) / density.sum()
    low, high = np.interp([0.025, 0.975], share, value)

    found = next_of_task([Observation(0.1, 0.8, 0.0)], mean=0.0, sd=1.0, between_runs=KNOWN)

    assert found.mean == pytest.approx((low + high) / 2, abs=0.01)
    assert found.sd == pytest.approx((high - low) / (2 * norm.ppf(0.975)), rel=0.01)


def test_a_bound_moves_the_value_beyond_it_and_leaves_it_uncertain() -> None:
    bound, value = Observation(2.0, math.inf, 0.1), Observation(3.0, 3.0, 0.1)

    bounded, known = (next_run([one], [], PUBLISHED) for one in (bound, value))

    assert bounded.mean > 2.0
    assert bounded.sd > 1.5 * known.sd


def test_runs_that_scatter_widen_the_interval_and_runs_that_agree_narrow_it() -> None:
    spreads = [next_run([Observation(0.0, 0.0, 0.1, 6, 5 * sd**2)], [], PUBLISHED).sd for sd in (0.1, 0.35, 1.0)]

    assert spreads[0] < 0.7 * spreads[1] < 0.7 * 0.7 * spreads[2]


def test_the_less_is_known_the_wider_the_interval() -> None:
    one = Observation(0.0, 0.0, 0.1)

    sds = [
        next_run(own, others, PUBLISHED).sd
        for own, others in (([one] * 10, []), ([one], []), ([], [[one]] * 3), ([], [[one]]), ([], []))
    ]

    assert sds == sorted(sds)
    assert sds[-1] == pytest.approx(0.87 * math.log(10), rel=0.06)


@pytest.mark.thorough
def test_contradicting_measurements_give_a_wide_interval_instead_of_a_failure() -> None:
    own = [Observation(-6.0, -6.0, 0.01), Observation(6.0, 6.0, 0.01), Observation(20.0, math.inf, 0.0)]

    found = next_run(own, [[Observation(-30.0, -30.0, 0.001)]], PUBLISHED)

    assert math.isfinite(found.mean)
    assert found.sd > 1.5


def test_a_measured_value_counts_the_same_wherever_it_falls_between_points_of_the_grid() -> None:
    found = [next_run([Observation(at, at, 0.02, 9)], [], PUBLISHED) for at in np.linspace(1.0, 1.1, 6)]

    for one, at in zip(found, np.linspace(1.0, 1.1, 6), strict=True):
        assert one.mean == pytest.approx(at, abs=0.03)
        assert one.sd == pytest.approx(found[0].sd, rel=0.05)
