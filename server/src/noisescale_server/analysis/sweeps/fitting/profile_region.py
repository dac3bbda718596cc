"""The likelihood region of a sweep, and the interval of anything that log B_crit and the level determine."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import stdtrit

from noisescale_server.analysis.sweeps.fitting.likelihood import Likelihood
from noisescale_server.analysis.sweeps.points.hyperbola import LIMIT, Array, log_steps_ratio

MARGIN = 9.0
"""How far beyond the batch sizes of the sweep log B_crit is looked for closely: 8,000 times."""

SPACING = 0.05
POINTS_INSIDE = 201


@dataclass(frozen=True, slots=True)
class ProfileRegion:
    """Every pair of log B_crit and level that the data allow at a confidence level, for one parameter at a time.

    Attributes:
        log_critical: Values of log B_crit inside the region, rising, [G].
        level_low: Lowest level at each, [G].
        level_high: Highest level at each, [G].
        reference: log B at which the level is meant.
        is_open_below: B_crit may be 0: every batch size is on the plateau.
        is_open_above: B_crit may be infinite: steps fall in proportion throughout.
    """

    log_critical: Array
    level_low: Array
    level_high: Array
    reference: float
    is_open_below: bool
    is_open_above: bool

    def interval(self, offset: Callable[[Array], Array]) -> tuple[float, float]:
        """Ends of level + offset(log B_crit) over the region."""
        shift = offset(self.log_critical)
        return float(np.nanmin(self.level_low + shift)), float(np.nanmax(self.level_high + shift))

    def log_steps(self, log_batch: float) -> tuple[float, float]:
        """Ends of log S at a batch size."""
        return self.interval(
            lambda c: log_steps_ratio(c, log_batch) - log_steps_ratio(c, self.reference),
        )

    def log_critical_batch(self) -> tuple[float, float]:
        """Ends of log B_crit; infinite where open."""
        low = -math.inf if self.is_open_below else float(self.log_critical[0])
        return low, math.inf if self.is_open_above else float(self.log_critical[-1])

    def log_min_steps(self) -> tuple[float, float]:
        """Ends of log S_min; -inf where B_crit may be infinite."""
        low, high = self.interval(lambda c: -log_steps_ratio(c, self.reference))
        return -math.inf if self.is_open_above else low, high

    def log_min_examples(self) -> tuple[float, float]:
        """Ends of log E_min; -inf where B_crit may be 0."""
        low, high = self.interval(lambda c: c - log_steps_ratio(c, self.reference))
        return -math.inf if self.is_open_below else low, high


def search_grid(log_batch: Array) -> Array:
    """Values of log B_crit at which a profile is looked at: close about the sweep, and both limits."""
    low, high = float(log_batch.min()) - MARGIN, float(log_batch.max()) + MARGIN
    inner = np.linspace(low, high, math.ceil((high - low) / SPACING) + 1)
    return np.concatenate([[low - LIMIT], inner, [high + LIMIT]])


def best_log_critical(likelihood: Likelihood, grid: Array, exponent: float = 1.0) -> tuple[float, float]:
    """The most likely log B_crit and its deviance; an end of the grid where the likelihood rises to it."""
    deviance = likelihood.profile(grid, exponent).deviance
    place = int(deviance.argmin())
    if place in (0, grid.size - 1):
        return float(grid[place]), float(deviance[place])
    found = minimize_scalar(
        lambda c: float(likelihood.profile(np.array([c]), exponent).deviance[0]),
        bounds=(float(grid[max(place - 1, 1)]), float(grid[min(place + 1, grid.size - 2)])),
        method="bounded",
        options={"xatol": 1e-9},
    )
    if found.fun < deviance[place]:
        return float(found.x), float(found.fun)
    return float(grid[place]), float(deviance[place])


def allowance(*, num_values: float, num_parameters: int, level: float) -> float:
    """How far above its least value the deviance may be: n log(1 + t² / (n - p)).

    For normal noise of unknown size and a straight line this is Student's interval exactly; as n grows it becomes the
    usual quantile of chi-square.
    """
    freedom = num_values - num_parameters
    quantile = float(stdtrit(freedom, 0.5 + level / 2))
    return num_values * math.log1p(quantile**2 / freedom)


def profile_region(likelihood: Likelihood, grid: Array, *, least: float, allowed: float, best: float) -> ProfileRegion:
    """The region where the deviance is at most `least` + `allowed`."""
    cut = least + allowed
    low, is_open_below = _end(likelihood, grid, cut, best)
    high, is_open_above = _end(likelihood, grid[::-1], cut, best)
    # close together where B_crit is finite, and the limits themselves where they are allowed
    between = np.linspace(max(low, float(grid[1])), min(high, float(grid[-2])), POINTS_INSIDE)
    inside = np.union1d(between[(between >= low) & (between <= high)], [low, best, high])
    ends = likelihood.level_ends(inside, cut)
    return ProfileRegion(inside, *ends, likelihood.reference, is_open_below, is_open_above)


def _end(likelihood: Likelihood, outwards_in: Array, cut: float, best: float) -> tuple[float, bool]:
    """The outermost log B_crit on one side that the cut allows, and whether that side is open."""
    deviance = likelihood.profile(outwards_in).deviance
    if deviance[0] <= cut:
        return float(outwards_in[0]), True
    allowed = np.flatnonzero(deviance <= cut)
    outside, inside = (
        (float(outwards_in[allowed[0] - 1]), float(outwards_in[allowed[0]]))
        if allowed.size
        else (float(outwards_in[0]), best)
    )
    if not allowed.size:
        # narrower than the grid: the best value is the only one inside
        nearer = outwards_in[(outwards_in - best) * (outwards_in[0] - best) > 0]
        outside = float(nearer[-1])

    def above(c: float) -> float:
        return float(likelihood.profile(np.array([c])).deviance[0]) - cut

    if above(inside) >= 0:
        return inside, False
    return float(brentq(above, outside, inside, xtol=1e-10)), False
