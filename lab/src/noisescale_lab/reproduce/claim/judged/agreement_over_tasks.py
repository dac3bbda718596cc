"""How well noise scales predict B_crit over tasks, each figure with its bootstrap interval over tasks.

r² is governed by the span: it never stands without span, rms factor and shares. Logarithms are to base 10.

Source of the comparison: McCandlish et al. 2018, arXiv:1812.06162, Table 1 and section 3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_lab.reproduce.trainer import Array

FEWEST_POINTS = 5
NUM_RESAMPLES = 2_000
SEED = 20181214

TINY = 1e-9
"""Below it a sum of squared logarithms is rounding: all points are one."""


@dataclass(frozen=True, slots=True)
class Point:
    """One target of one task, both numbers in the task's unit."""

    task: str
    target: float | None
    noise_scale: float
    critical_batch: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % interval over tasks."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The figures of one series of points.

    Attributes:
        num_points: Targets.
        num_tasks: Different tasks among them.
        r_squared_of_fit: About the fitted line, the squared correlation.
        r_squared_of_identity: About B_crit = noise scale; may be negative.
        rms_factor: 10 to the root mean square of log κ, κ = B_crit / noise scale.
        within_factor_2: Share of points with 1/2 ≤ κ ≤ 2.
        within_factor_3: Share of points with 1/3 ≤ κ ≤ 3.
        slope: Of log B_crit on log noise scale.
        decades: Of B_crit, smallest to largest.
    """

    num_points: int
    num_tasks: int
    r_squared_of_fit: Figure
    r_squared_of_identity: Figure
    rms_factor: Figure
    within_factor_2: Figure
    within_factor_3: Figure
    slope: Figure
    decades: float


def agreement(points: Sequence[Point]) -> Agreement | None:
    """The figures of some points; None for fewer than five tasks.

    Tasks are resampled with all their targets, as targets of one task are no independent trials (Efron & Tibshirani
    1993, section 13.3: percentiles).
    """
    tasks = sorted({point.task for point in points})
    if len(tasks) < FEWEST_POINTS:
        return None
    sums = np.array([_sums([point for point in points if point.task == task]) for task in tasks])
    drawn = np.random.default_rng(SEED).multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), NUM_RESAMPLES)
    own = {name: float(values[0]) for name, values in _figures(sums.sum(0, keepdims=True)).items()}
    resampled = _figures(drawn @ sums)
    return Agreement(
        num_points=len(points),
        num_tasks=len(tasks),
        decades=float(np.ptp(np.log10([point.critical_batch for point in points]))),
        **{name: _figure(value, resampled[name]) for name, value in own.items()},
    )


def _sums(points: Sequence[Point]) -> list[float]:
    """Of one task: what the figures are made of, and what adds over tasks."""
    logs = np.log10([(point.noise_scale, point.critical_batch) for point in points])
    x, y = logs[:, 0], logs[:, 1]
    distance = np.abs(y - x)
    # a factor that is met exactly is within it, whatever the rounding of logarithms
    within = [float((distance <= math.log10(factor) + 1e-12).sum()) for factor in (2, 3)]
    return [float(len(x)), *(float(term.sum()) for term in (x, y, x * x, y * y, x * y, distance**2)), *within]


def _figures(sums: Array) -> dict[str, Array]:
    """The figures of rows of sums; not a number where all points of a row are one."""
    n, x, y, x_sq, y_sq, cross, distance_sq, within_2, within_3 = sums.T
    xx, yy, xy = x_sq - x * x / n, y_sq - y * y / n, cross - x * y / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "r_squared_of_fit": np.where(xx * yy > TINY, xy**2 / (xx * yy), np.nan),
            "r_squared_of_identity": np.where(yy > TINY, 1 - distance_sq / yy, np.nan),
            "rms_factor": 10 ** np.sqrt(distance_sq / n),
            "within_factor_2": within_2 / n,
            "within_factor_3": within_3 / n,
            "slope": np.where(xx > TINY, xy / xx, np.nan),
        }


def _figure(value: float, resampled: Array) -> Figure:
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Figure(value, float(low), float(high))
