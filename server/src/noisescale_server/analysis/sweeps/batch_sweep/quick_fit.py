"""The best curve through each of many sweeps of the same batch sizes: values alone, without intervals."""

import math
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.sweeps.fitting.profile_region import MARGIN
from noisescale_server.analysis.sweeps.points.hyperbola import Array, log_steps_ratio

SPACING = 0.1


@dataclass(frozen=True, slots=True)
class QuickFits:
    """Best values of R sweeps, all [R].

    Attributes:
        log_critical: log B_crit; -inf or inf where the curve has no bend.
        log_min_steps: log S_min; -inf with an infinite B_crit.
    """

    log_critical: Array
    log_min_steps: Array


def quick_fits(log_batch: Array, log_steps: Array, weight: Array) -> QuickFits:
    """Weighted least squares in log steps.

    Args:
        log_batch: log B, [K].
        log_steps: log S of each sweep, NaN where it is not known, [R, K].
        weight: Inverse variances, up to a factor, [K].
    """
    low, high = float(log_batch.min()) - MARGIN, float(log_batch.max()) + MARGIN
    grid = np.linspace(low, high, math.ceil((high - low) / SPACING) + 1)
    shape = log_steps_ratio(grid[:, None], log_batch[None, :])
    share = np.where(np.isnan(log_steps), 0.0, weight)
    share = share / share.sum(axis=1, keepdims=True)
    known = np.nan_to_num(log_steps)
    # the squares about the best level, Σ w (y - x)² - (Σ w (y - x))², from sums over batch sizes
    level = (share * known).sum(1)[:, None] - share @ shape.T
    square = (share * known**2).sum(1)[:, None] - 2 * (share * known) @ shape.T + share @ (shape**2).T
    squares = square - level**2
    place = squares.argmin(axis=1)
    rows, inner = np.arange(len(place)), np.clip(place, 1, grid.size - 2)
    before, at, after = (squares[rows, inner + shift] for shift in (-1, 0, 1))
    curve = before - 2 * at + after
    shift = np.where(curve > 0, (before - after) / (2 * np.where(curve > 0, curve, 1.0)), 0.0)
    critical = grid[inner] + np.clip(shift, -1, 1) * (grid[1] - grid[0])
    residual = known - log_steps_ratio(critical[:, None], log_batch[None, :])
    log_min_steps = (share * residual).sum(1)
    critical = np.where(place == 0, -np.inf, np.where(place == grid.size - 1, np.inf, critical))
    return QuickFits(critical, np.where(np.isposinf(critical), -np.inf, log_min_steps))
