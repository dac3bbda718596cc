"""How well noise scales foretell B_crit over tasks, each figure with its bootstrap interval over tasks.

r² is governed by the span: it never stands without span, rms factor and shares. Logarithms are to base 10.

Source of the comparison: McCandlish et al. 2018, arXiv:1812.06162, Table 1 and section 3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale.reproduce.stacked.trainer import Array

FEWEST_POINTS = 5
NUM_RESAMPLES = 2_000
SEED = 20181214


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
    logs = {task: np.log10([(p.noise_scale, p.critical_batch) for p in points if p.task == task]) for task in tasks}
    own = _figures(np.concatenate(list(logs.values())))
    generator = np.random.default_rng(SEED)
    resampled: dict[str, list[float]] = {name: [] for name in own}
    for _ in range(NUM_RESAMPLES):
        drawn = [logs[tasks[place]] for place in generator.integers(len(tasks), size=len(tasks))]
        for name, value in _figures(np.concatenate(drawn)).items():
            resampled[name].append(value)
    return Agreement(
        num_points=len(points),
        num_tasks=len(tasks),
        decades=float(np.ptp(np.log10([point.critical_batch for point in points]))),
        **{name: _figure(value, resampled[name]) for name, value in own.items()},
    )


def _figures(logs: Array) -> dict[str, float]:
    """The figures of rows of log noise scale and log B_crit; not a number where all rows are one."""
    scale, critical = logs[:, 0], logs[:, 1]
    log_kappa = critical - scale
    x, y = scale - scale.mean(), critical - critical.mean()
    xx, yy, xy = float(x @ x), float(y @ y), float(x @ y)
    is_spread = xx > 0 and yy > 0
    return {
        "r_squared_of_fit": xy**2 / (xx * yy) if is_spread else math.nan,
        "r_squared_of_identity": 1 - float(log_kappa @ log_kappa) / yy if is_spread else math.nan,
        "rms_factor": 10 ** math.sqrt(float((log_kappa**2).mean())),
        "within_factor_2": float((np.abs(log_kappa) <= math.log10(2)).mean()),
        "within_factor_3": float((np.abs(log_kappa) <= math.log10(3)).mean()),
        "slope": xy / xx if is_spread else math.nan,
    }


def _figure(value: float, resampled: Sequence[float]) -> Figure:
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Figure(value, float(low), float(high))
