"""A sweep as arrays for the likelihood, at the level at which its noise is independent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from noisescale_server.analysis.sweeps.points.hyperbola import Array
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint


class NoiseLevel(StrEnum):
    """What scatters independently about the curve.

    RUNS: single runs, as repeats of a batch size do. BATCH_SIZES: whole batch sizes, one value each, where tuning or
    the curve itself errs by more than repeats show or nothing was repeated.
    """

    RUNS = "runs"
    BATCH_SIZES = "batch_sizes"


@dataclass(frozen=True, slots=True)
class Observations:
    """Exact groups and censored values; all logarithms of steps and of examples.

    Attributes:
        log_batch: log B of each exact group, [K].
        log_steps: Mean log S of each, [K].
        count: Independent values behind each, [K].
        weight: Inverse variance of each mean, in units of a single value's, [K].
        squares: Squared deviations inside the groups, summed.
        censored_log_batch: log B of each censored value, [Q].
        log_low: log of its lower end; -inf where there is none, [Q].
        log_high: log of its upper end; inf where the target was not reached, [Q].
    """

    log_batch: Array
    log_steps: Array
    count: Array
    weight: Array
    squares: float
    censored_log_batch: Array
    log_low: Array
    log_high: Array

    @property
    def num_values(self) -> float:
        """Independent values that are known within two ends: right-censored ones do not count."""
        return float(self.count.sum() + np.isfinite(self.log_high).sum())

    @property
    def has_censored(self) -> bool:
        """Whether any value is known as an interval or a bound only."""
        return bool(self.log_low.size)

    @property
    def all_log_batch(self) -> Array:
        """Log B of everything, [K + Q]."""
        return np.concatenate([self.log_batch, self.censored_log_batch])


def observations(
    points: Sequence[SweepPoint], level: NoiseLevel, variance_of_mean: Sequence[float] | None = None
) -> Observations:
    """The sweep as arrays at a noise level.

    Args:
        points: The sweep.
        level: What scatters independently.
        variance_of_mean: For the level of batch sizes, where repeats scatter differently: the variance of each
            point's mean; only their ratios matter, the size comes from the scatter about the curve.
    """
    exact: list[tuple[float, float, float, float]] = []
    censored: list[tuple[float, float, float]] = []
    for number, point in enumerate(points):
        variance = 1.0 if variance_of_mean is None else variance_of_mean[number]
        log_batch = math.log(point.batch_size)
        if point.repeats is not None and (level is NoiseLevel.RUNS or not point.censored):
            count = point.repeats.count if level is NoiseLevel.RUNS else 1
            exact.append((log_batch, point.repeats.mean_log_steps, count, count / variance))
        ends = _ends(point) if level is NoiseLevel.RUNS else _end_of_mean(point)
        censored.extend((log_batch, low, high) for low, high in ends)
    log_batch_exact, log_steps, count, weight = _columns(exact, 4)
    if variance_of_mean is not None and exact:
        weight = weight / weight.mean()
    censored_log_batch, log_low, log_high = _columns(censored, 3)
    squares = _squares(points) if level is NoiseLevel.RUNS else 0.0
    return Observations(
        log_batch=log_batch_exact,
        log_steps=log_steps,
        count=count,
        weight=weight,
        squares=squares,
        censored_log_batch=censored_log_batch,
        log_low=log_low,
        log_high=log_high,
    )


def _columns(rows: Sequence[tuple[float, ...]], num_columns: int) -> Array:
    """Rows as columns, also where there are none."""
    return np.array(rows, dtype=np.float64).reshape(-1, num_columns).T


def _squares(points: Sequence[SweepPoint]) -> float:
    return math.fsum(point.repeats.squares for point in points if point.repeats is not None)


def _ends(point: SweepPoint) -> list[tuple[float, float]]:
    return [(math.log(low) if low > 0 else -math.inf, math.log(high)) for low, high in point.censored]


def _end_of_mean(point: SweepPoint) -> list[tuple[float, float]]:
    """The mean of log S of a batch size: between that with censored runs at their low ends and that at their high."""
    ends = _ends(point)
    if not ends:
        return []
    known = point.repeats or Repeats(0, 0.0, 0.0)
    total, num = known.count * known.mean_log_steps, known.count + len(ends)
    return [((total + sum(low for low, _ in ends)) / num, (total + sum(high for _, high in ends)) / num)]
