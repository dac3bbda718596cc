"""S_min and B_crit of tuned runs at several batch sizes, with an interval, from numpy alone.

The server fits with a likelihood of its own, and scipy; this one is for machines without a server. Model and interval
are the same: log-normal steps, and all B_crit at which -2 log L rises by at most n log(1 + t² / (n - 2)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_core.estimators.student_t import t_quantile

FEWEST_POINTS = 3
FEWEST_STEPS = 5.0
"""Targets that are met in fewer steps break the theory: an exact quadratic then shows B_crit many times too large."""

NUM_CANDIDATES = 4001
BEYOND = 100.0
"""Candidates for B_crit go from the smallest batch size divided by this to the largest times it."""


@dataclass(frozen=True, slots=True)
class CriticalFit:
    """Fit of S = S_min (1 + B_crit / B).

    Attributes:
        min_steps: S_min, steps.
        critical_batch: B_crit, in examples.
        low: Lower end of its 95 % interval; None where it is open.
        high: Upper end; None where it is open.
        rms: Root mean square of the errors of log S.
        num_points: Batch sizes.
    """

    min_steps: float
    critical_batch: float
    low: float | None
    high: float | None
    rms: float
    num_points: int


def fit(points: Sequence[tuple[int, float]]) -> CriticalFit | None:
    """The least squares fit in log S over points (batch size, steps); None for fewer than three.

    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11.
    """
    known = [(batch, steps) for batch, steps in points if math.isfinite(steps)]
    if len(known) < FEWEST_POINTS:
        return None
    batch, steps = (np.array(column, dtype=float) for column in zip(*known, strict=True))
    candidates = np.geomspace(batch.min() / BEYOND, batch.max() * BEYOND, NUM_CANDIDATES)
    residual = np.log(steps) - np.log1p(candidates[:, None] / batch)
    errors = residual.var(1)
    row = int(errors.argmin())
    count = len(known)
    quantile = t_quantile(0.975, count - 2)
    inside = np.flatnonzero(errors <= errors[row] * (1 + quantile**2 / (count - 2)))
    return CriticalFit(
        min_steps=float(np.exp(residual[row].mean())),
        critical_batch=float(candidates[row]),
        low=None if inside[0] == 0 else float(candidates[inside[0]]),
        high=None if inside[-1] == NUM_CANDIDATES - 1 else float(candidates[inside[-1]]),
        rms=float(math.sqrt(errors[row])),
        num_points=count,
    )


def exclusion(found: CriticalFit | None) -> str | None:
    """Why a target does not count; None where it does."""
    if found is None:
        return "met at fewer than three batch sizes"
    if found.low is None or found.high is None:
        return "B_crit has no bounded interval"
    if found.min_steps < FEWEST_STEPS:
        return f"S_min is {found.min_steps:.1f}, below {FEWEST_STEPS:g} steps"
    return None
