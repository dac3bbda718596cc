"""How well noise scales predict critical batches over tasks, each number with its interval over tasks.

r² of logarithms that span six orders of magnitude says little about a factor of five: the spread of
κ = B_crit / noise scale stands beside it. Tasks are what is resampled: another reader has other tasks, not other
measurements of these.

Source of the comparison: McCandlish et al. 2018, arXiv:1812.06162, Table 1 and section 3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisescale_server.analysis.comparison.agreement import agreement
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.robust import interval_of_share

Array = NDArray[np.float64]

FEWEST_TASKS = 5
"""Of fewer, resampling gives no interval that could be trusted, and a number without one is not shown."""

NUM_RESAMPLES = 2_000
SEED = 20181214


@dataclass(frozen=True, slots=True)
class Statistics:
    """Noise scales against critical batches over tasks; logarithms are to base 10.

    Attributes:
        num_tasks: Pairs.
        r_squared: Squared correlation of the logarithms.
        slope: Of log B_crit on log noise scale, least squares.
        r_squared_of_identity: 1 - Σ (log κ)² / Σ (log B_crit - mean)²: what B_crit = noise scale explains; may be
            negative.
        typical_kappa: Median of κ.
        median_abs_log10_kappa: Median of |log κ|.
        rms_factor: 10 to the root mean square of log κ: how far off the noise scale is, as a factor.
        within_factor_2: Share of the tasks with 1/2 <= κ <= 2.
        within_factor_3: Share of the tasks with 1/3 <= κ <= 3.
        decades_of_noise_scale: log of the largest over the smallest noise scale.
        decades_of_critical_batch: The same of B_crit.
    """

    num_tasks: int
    r_squared: Estimate
    slope: Estimate
    r_squared_of_identity: Estimate
    typical_kappa: Estimate
    median_abs_log10_kappa: Estimate
    rms_factor: Estimate
    within_factor_2: Estimate
    within_factor_3: Estimate
    decades_of_noise_scale: float
    decades_of_critical_batch: float


def statistics(pairs: Sequence[tuple[float, float]], *, level: float = 0.95) -> Statistics | None:
    """The statistics of (noise scale, B_crit), each pair in one unit; None for fewer than five tasks.

    Intervals are percentiles of 2,000 resamples of the tasks, of shares Wilson's (Efron & Tibshirani 1993, section
    13.3; Wilson 1927).

    Raises:
        ValueError: If a number is not positive, or one is the same for all tasks.
    """
    if len(pairs) < FEWEST_TASKS:
        return None
    found = agreement(pairs)
    logs = np.log10(np.array(pairs, dtype=float))
    drawn = np.random.default_rng(SEED).integers(len(pairs), size=(NUM_RESAMPLES, len(pairs)))
    resampled = _figures(logs[drawn, 0], logs[drawn, 1])
    own = {name: float(values[0]) for name, values in _figures(logs[None, :, 0], logs[None, :, 1]).items()}
    own |= {"r_squared": found.r_squared, "slope": found.slope}
    estimates = {name: _with_interval(own[name], resampled[name], level) for name in own}
    distance = np.abs(logs[:, 1] - logs[:, 0])
    return Statistics(
        num_tasks=len(pairs),
        **estimates,
        within_factor_2=_share(distance, 2.0, level),
        within_factor_3=_share(distance, 3.0, level),
        decades_of_noise_scale=float(np.ptp(logs[:, 0])),
        decades_of_critical_batch=float(np.ptp(logs[:, 1])),
    )


def _figures(scale: Array, critical: Array) -> dict[str, Array]:
    """The figures of every row of tasks; NaN where a row holds one task alone."""
    x = scale - scale.mean(axis=1, keepdims=True)
    y = critical - critical.mean(axis=1, keepdims=True)
    log_kappa = critical - scale
    xx, yy, xy = (x * x).sum(axis=1), (y * y).sum(axis=1), (x * y).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "r_squared": xy**2 / (xx * yy),
            "slope": xy / xx,
            "r_squared_of_identity": 1 - (log_kappa**2).sum(axis=1) / yy,
            "typical_kappa": 10 ** np.median(log_kappa, axis=1),
            "median_abs_log10_kappa": np.median(np.abs(log_kappa), axis=1),
            "rms_factor": 10 ** np.sqrt((log_kappa**2).mean(axis=1)),
        }


def _with_interval(value: float, resampled: Array, level: float) -> Estimate:
    known = resampled[np.isfinite(resampled)]
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return Estimate(value, float(low), float(high), level)


def _share(distance: Array, factor: float, level: float) -> Estimate:
    # a factor that is met exactly is within it, whatever the rounding of logarithms
    inside = int((distance <= math.log10(factor) + 1e-12).sum())
    return Estimate(inside / distance.size, *interval_of_share(inside, distance.size, level), level)


def kappa_estimate(noise_scale: Estimate | None, critical_batch: Estimate | None) -> Estimate | None:
    """κ of one task with the errors of both numbers; None unless both are known."""
    return None if noise_scale is None or critical_batch is None else quotient(critical_batch, noise_scale)


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """`above` / `below`, two positive numbers whose errors are independent and are added in quadrature of log.

    An end is None where either interval is open on that side.
    """
    log_quotient = math.log(above.value / below.value)
    down = _quadrature(_log_ratio(above.value, above.low), _log_ratio(below.high, below.value))
    up = _quadrature(_log_ratio(above.high, above.value), _log_ratio(below.value, below.low))
    return Estimate(
        math.exp(log_quotient),
        None if down is None else math.exp(log_quotient - down),
        None if up is None else math.exp(log_quotient + up),
        min(above.level, below.level),
    )


def _log_ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or below is None or below <= 0 else math.log(above / below)


def _quadrature(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else math.hypot(first, second)
