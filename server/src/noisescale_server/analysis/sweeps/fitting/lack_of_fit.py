"""Whether the curve is the right one: its exponent, its misfit against repeats, unequal noise, edges of grids."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting.likelihood import Likelihood
from noisescale_server.analysis.sweeps.fitting.noise import MISFIT_PROBABILITY, RepeatNoise
from noisescale_server.analysis.sweeps.fitting.observations import Observations
from noisescale_server.analysis.sweeps.fitting.profile_region import MARGIN, allowance
from noisescale_server.analysis.sweeps.points.hyperbola import Array
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint

FEWEST_STEPS = 5.0
"""Below it the theory, which is of many small steps, overstates what a step can do: an isotropic quadratic that is
solved in fewer gives a B_crit several times its noise scale."""

LARGEST_MISFIT = 0.08
"""A curve that misses by more than this (rms, as a share of the steps) and by more than repeats do is not the curve."""

LEAST_EXPONENT = 0.1
MOST_EXPONENT = 10.0
EXPONENTS = 25
COARSE_SPACING = 0.2
REFINEMENTS = 2
PLACES = 25


class Finding(StrEnum):
    """What speaks against a fit."""

    EXPONENT = "exponent"
    MISFIT = "misfit"
    UNEQUAL_NOISE = "unequal_noise"
    GRID_EDGE = "grid_edge"
    FEW_STEPS = "few_steps"


@dataclass(frozen=True, slots=True)
class LackOfFit:
    """What the tests of a fit found.

    Attributes:
        findings: What speaks against it; empty if nothing does.
        exponent: ν of S = S_min (1 + (B_crit / B)^ν)^(1/ν), 1 in theory; None for fewer than four values.
        misfit_probability: Chance of such a misfit if repeats were the only noise; None without repeats.
        unequal_noise_probability: Chance of repeats this unequal between batch sizes; None without repeats.
        grid_edge_batch_sizes: Where the best learning rate was the last one tried.
    """

    findings: tuple[Finding, ...]
    exponent: Estimate | None
    misfit_probability: float | None
    unequal_noise_probability: float | None
    grid_edge_batch_sizes: tuple[float, ...]

    @property
    def is_found(self) -> bool:
        """Whether anything speaks against the fit."""
        return bool(self.findings)


def against(
    points: Sequence[SweepPoint],
    noise: RepeatNoise | None,
    misfit: float | None,
    *,
    power: Estimate | None,
    min_steps: float | None,
) -> LackOfFit:
    """What speaks against a fit.

    Args:
        points: The sweep.
        noise: What repeats show.
        misfit: Chance of such a misfit by them.
        power: ν; None where it was not asked for.
        min_steps: S_min in optimizer steps; None where steps are counted otherwise.
    """
    edges = tuple(point.batch_size for point in points if point.is_at_grid_edge)
    tests = (
        (Finding.EXPONENT, power is not None and not power.holds(1.0)),
        (Finding.MISFIT, misfit is not None and misfit < MISFIT_PROBABILITY),
        (Finding.UNEQUAL_NOISE, noise is not None and noise.is_unequal),
        (Finding.GRID_EDGE, bool(edges)),
        (Finding.FEW_STEPS, min_steps is not None and min_steps < FEWEST_STEPS),
    )
    return LackOfFit(
        findings=tuple(finding for finding, is_found in tests if is_found),
        exponent=power,
        misfit_probability=misfit,
        unequal_noise_probability=None if noise is None else noise.unequal_probability,
        grid_edge_batch_sizes=edges,
    )


def exponent(likelihood: Likelihood, data: Observations, *, level: float) -> Estimate | None:
    """The most likely ν and its profile-likelihood interval; an end is None beyond 0.1 or 10."""
    if data.num_values < 4 or np.unique(data.all_log_batch).size < 4:
        return None
    grid = _coarse_grid(data)
    allowed = allowance(num_values=data.num_values, num_parameters=3, level=level)
    logs = np.linspace(math.log(LEAST_EXPONENT), math.log(MOST_EXPONENT), EXPONENTS)
    deviance = _least_deviances(likelihood, grid, logs)
    best, least = _vertex(logs, deviance, int(deviance.argmin()))
    cut = least + allowed

    def end(rising: Array, heights: Array) -> float | None:
        return _crossing(lambda some: _least_deviances(likelihood, grid, some) - cut, rising, heights - cut)

    low, high = end(logs, deviance), end(logs[::-1], deviance[::-1])
    return Estimate(
        math.exp(best),
        None if low is None else math.exp(min(low, best)),
        None if high is None else math.exp(max(high, best)),
        level,
    )


def _crossing(above: Callable[[Array], Array], places: Array, heights: Array) -> float | None:
    """Where a function first falls below 0 along places; None if it begins below, the least if it is never there."""
    if heights[0] <= 0:
        return None
    for _ in range(REFINEMENTS):
        below = np.flatnonzero(heights <= 0)
        # data without any noise allow one value only, which lies between places
        first = int(below[0]) if below.size else max(int(heights.argmin()), 1)
        places = np.linspace(places[first - 1], places[min(first + (not below.size), places.size - 1)], PLACES)
        heights = above(places)
    below = np.flatnonzero(heights <= 0)
    return float(places[int(below[0]) if below.size else int(heights.argmin())])


def _coarse_grid(data: Observations) -> Array:
    low, high = float(data.all_log_batch.min()) - MARGIN, float(data.all_log_batch.max()) + MARGIN
    return np.linspace(low, high, math.ceil((high - low) / COARSE_SPACING) + 1)


def _least_deviances(likelihood: Likelihood, grid: Array, log_exponents: Array) -> Array:
    """For each ν the least deviance over log B_crit: the lowest point of the parabola about the lowest of the grid."""
    repeated = np.repeat(np.exp(log_exponents), grid.size)
    deviance = likelihood.profile(np.tile(grid, log_exponents.size), repeated).deviance
    return np.array([_vertex(grid, row, int(row.argmin()))[1] for row in deviance.reshape(-1, grid.size)])


def _vertex(x: Array, y: Array, place: int) -> tuple[float, float]:
    """Where the parabola through the lowest point and its neighbours is lowest, on an even grid; an end is itself."""
    if place in (0, x.size - 1):
        return float(x[place]), float(y[place])
    before, at, after = (float(value) for value in y[place - 1 : place + 2])
    curve = before - 2 * at + after
    if curve <= 0:
        return float(x[place]), at
    shift = (before - after) / (2 * curve)
    return float(x[place]) + shift * float(x[1] - x[0]), at - (before - after) ** 2 / (8 * curve)
