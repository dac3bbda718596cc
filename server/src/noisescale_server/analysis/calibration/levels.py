"""A logarithm that differs between families, between tasks of a family and between runs of a task: what to expect next.

y = μ + task + run + error: the family's μ is known from published tasks as far as it is, tasks differ from it with one
standard deviation, runs of a task with another. With a handful of measurements neither can be estimated by itself, so
both are integrated over, from what is plausible before any measurement (Gelman et al. 2013, Bayesian Data Analysis,
sections 5.4 and 5.7). Nothing can become negative or collapse to zero. All integrals are sums over a grid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]
# axes, as suffixes: m family mean, x value of a task, r of a run, b spread between tasks, w between runs

SPACING = 0.1
"""Of the grid of logarithms; a measured value counts as known to half of it, ± 5 %."""

MARGIN = 8.0
"""How far the grid goes beyond prior and measurements."""

NUM_SPREADS = 13
"""Standard deviations that are summed over, evenly spaced on the log scale within ± 2.5 of their spread."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """What is plausible for a standard deviation before any measurement: log-normal.

    Attributes:
        median: In units of the logarithm.
        log_sd: Standard deviation of its logarithm.
    """

    median: float
    log_sd: float


@dataclass(frozen=True, slots=True)
class Levels:
    """What is known before any measurement.

    Attributes:
        mean: Of a family's μ.
        sd: Of a family's μ.
        between_tasks: Of a family.
        between_runs: Of a task.
    """

    mean: float
    sd: float
    between_tasks: Spread
    between_runs: Spread


@dataclass(frozen=True, slots=True)
class Observation:
    """What one sweep, branch or followed run says of its task's logarithm: a value, or an interval that it lies in.

    Attributes:
        low: The value, or the lower end; minus infinity where it is open.
        high: The value again, or the upper end; infinity where it is open.
        error: Standard deviation of the measurement itself, without the spread between runs.
        num_runs: Runs that it is the mean of.
        squares: Sum of squared deviations of these runs from their mean.
        run_error: Standard deviation of the measurement of one of these runs.
    """

    low: float
    high: float
    error: float
    num_runs: int = 1
    squares: float = 0.0
    run_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Predictive:
    """The normal distribution whose 95 % interval is that of what comes next."""

    mean: float
    sd: float


def next_run(own: Sequence[Observation], others: Sequence[Sequence[Observation]], levels: Levels) -> Predictive:
    """The logarithm of a new run.

    Args:
        own: Observations of its own task; none for a task that was never measured.
        others: Observations of each other task of the family.
        levels: What is known before.
    """
    grid = _grid([*own, *(one for task in others for one in task)], levels.mean, levels.sd)
    weight_b, between_tasks = _spreads(levels.between_tasks)
    weight_w, _ = _spreads(levels.between_runs)
    task_bmx = _kernels(grid, between_tasks)
    # log weight of (b, m, w) given the other tasks
    family_m = _log_normal(_points(grid), levels.mean, levels.sd)
    log_bmw = np.log(weight_b)[:, None, None] + family_m[None, :, None] + np.log(weight_w)[None, None, :]
    for task in others:
        top, likelihood_xw = _scaled(_log_likelihood(task, grid, levels.between_runs))
        with np.errstate(divide="ignore"):
            log_bmw = log_bmw + np.log(task_bmx @ likelihood_xw) + top
    _, weight_bmw = _scaled(log_bmw)
    prior_xw = np.einsum("bmx,bmw->xw", task_bmx, weight_bmw, optimize=True)
    _, likelihood_xw = _scaled(_log_likelihood(own, grid, levels.between_runs))
    return _predictive(prior_xw * likelihood_xw, grid, levels.between_runs)


def next_of_task(own: Sequence[Observation], *, mean: float, sd: float, between_runs: Spread) -> Predictive:
    """The logarithm of a new run of a task about which `mean` and `sd` were known besides.

    Args:
        own: Observations of the task.
        mean: What else is known of the task.
        sd: How well.
        between_runs: Of the task.
    """
    grid = _grid(own, mean, sd)
    weight_w, _ = _spreads(between_runs)
    log_xw = _log_normal(_points(grid), mean, sd)[:, None] + np.log(weight_w)
    _, weight_xw = _scaled(log_xw + _log_likelihood(own, grid, between_runs))
    return _predictive(weight_xw, grid, between_runs)


def _log_likelihood(observations: Sequence[Observation], grid: tuple[int, int], between_runs: Spread) -> Array:
    """Log p(observations | the task's value x, spread between runs w), [x, w], up to a constant."""
    value_x = _points(grid)
    _, spread_w = _spreads(between_runs)
    total = np.zeros((value_x.size, spread_w.size))
    for one in observations:
        half = SPACING / 2 if one.low == one.high else 0.0
        sd_w = np.sqrt(one.error**2 + spread_w**2 / one.num_runs)
        low_xw = (one.low - half - value_x[:, None]) / sd_w
        high_xw = (one.high + half - value_x[:, None]) / sd_w
        # the tail where both are small: 1 - 1e-20 would be 1
        is_above = low_xw > 0
        inside = ndtr(np.where(is_above, -low_xw, high_xw)) - ndtr(np.where(is_above, -high_xw, low_xw))
        run_variance_w = spread_w**2 + one.run_error**2
        freedom = one.num_runs - 1
        with np.errstate(divide="ignore"):
            total += np.log(inside) - freedom / 2 * np.log(run_variance_w) - one.squares / (2 * run_variance_w)
    return total


def _predictive(weight_xw: Array, grid: tuple[int, int], between_runs: Spread) -> Predictive:
    """Runs of the task: its value with the spread between runs, as the normal with the same 95 % interval."""
    _, spread_w = _spreads(between_runs)
    density = np.einsum("wrx,xw->r", _kernels(grid, spread_w), weight_xw, optimize=True)
    share = np.cumsum(density) - density / 2
    low, high = np.interp([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], share / density.sum(), _points(grid))
    return Predictive(float(low + high) / 2, float(high - low) / (2 * NormalDist().inv_cdf(0.5 + LEVEL / 2)))


def _grid(observations: Sequence[Observation], mean: float, sd: float) -> tuple[int, int]:
    """First and last unit of a grid that holds everything; whole units, so that kernels are found again."""
    ends = [end for one in observations for end in (one.low, one.high) if math.isfinite(end)]
    return math.floor(min([mean - sd, *ends]) - MARGIN), math.ceil(max([mean + sd, *ends]) + MARGIN)


def _points(grid: tuple[int, int]) -> Array:
    return np.linspace(*grid, round((grid[1] - grid[0]) / SPACING) + 1)


def _spreads(prior: Spread) -> tuple[Array, Array]:
    """Weights and standard deviations."""
    place = np.linspace(-2.5, 2.5, NUM_SPREADS)
    weight = np.exp(-(place**2) / 2)
    return weight / weight.sum(), prior.median * np.exp(prior.log_sd * place)


def _kernels(grid: tuple[int, int], sds: Array) -> Array:
    return _kept_kernels(grid[1] - grid[0], tuple(sds.tolist()))


@lru_cache(maxsize=16)
def _kept_kernels(length: int, sds: tuple[float, ...]) -> Array:
    """Normal densities between any two points of a grid, [spread, point, point]: 6 MB, made once."""
    points = _points((0, length))
    away = points[:, None] - points
    return np.stack([SPACING / (math.sqrt(2 * math.pi) * sd) * np.exp(-((away / sd) ** 2) / 2) for sd in sds])


def _log_normal(values: Array, mean: float, sd: float) -> Array:
    return np.asarray(-(((values - mean) / sd) ** 2) / 2)


def _scaled(log_weight: Array) -> tuple[float, Array]:
    """The largest logarithm, and the weights divided by it."""
    top = float(log_weight.max())
    return top, np.exp(log_weight - top)
