"""Whether the curve is the right one: its exponent, its misfit against repeats, unequal noise, edges of grids."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.optimize import brentq

from noisescale_server.analysis.batch_sweep.hyperbola import Array
from noisescale_server.analysis.batch_sweep.likelihood import Likelihood
from noisescale_server.analysis.batch_sweep.observations import Observations
from noisescale_server.analysis.batch_sweep.profile_region import MARGIN, allowance
from noisescale_server.analysis.estimate import Estimate

LEAST_EXPONENT = 0.1
MOST_EXPONENT = 10.0
EXPONENTS = 25
COARSE_SPACING = 0.2


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


def exponent(likelihood: Likelihood, data: Observations, *, level: float) -> Estimate | None:
    """The most likely ν and its profile-likelihood interval; an end is None beyond 0.1 or 10."""
    if data.num_values < 4 or np.unique(data.all_log_batch).size < 4:
        return None
    grid = _coarse_grid(data)
    allowed = allowance(num_values=data.num_values, num_parameters=3, level=level)
    logs = np.linspace(math.log(LEAST_EXPONENT), math.log(MOST_EXPONENT), EXPONENTS)
    deviance = np.array([_least_deviance(likelihood, grid, math.exp(value)) for value in logs])
    place = int(deviance.argmin())
    best, least = _vertex(logs, deviance, place)

    def above(log_exponent: float) -> float:
        return _least_deviance(likelihood, grid, math.exp(log_exponent)) - least - allowed

    low = None if deviance[0] <= least + allowed else _crossing(above, float(logs[0]), best)
    high = None if deviance[-1] <= least + allowed else _crossing(above, float(logs[-1]), best)
    return Estimate(
        math.exp(best),
        None if low is None else math.exp(low),
        None if high is None else math.exp(high),
        level,
    )


def _crossing(above: Callable[[float], float], outside: float, inside: float) -> float:
    """Where a function falls below 0; `inside` if even there it is not below, as of data without any noise."""
    return inside if above(inside) >= 0 else float(brentq(above, outside, inside, xtol=1e-4))


def _coarse_grid(data: Observations) -> Array:
    low, high = float(data.all_log_batch.min()) - MARGIN, float(data.all_log_batch.max()) + MARGIN
    return np.linspace(low, high, math.ceil((high - low) / COARSE_SPACING) + 1)


def _least_deviance(likelihood: Likelihood, grid: Array, value: float) -> float:
    """The least deviance over log B_crit: the lowest point of the parabola through the three lowest of the grid."""
    deviance = likelihood.profile(grid, value).deviance
    return _vertex(grid, deviance, int(deviance.argmin()))[1]


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
