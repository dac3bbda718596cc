"""The likelihood region of a turning curve."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisescale_server.analysis.sweeps.fitting.many_roots import many_roots
from noisescale_server.analysis.sweeps.fitting.profile_region import ProfileRegion, profile_region
from noisescale_server.analysis.sweeps.fitting.turning_curve import POWERS, log_best_batch, log_rise
from noisescale_server.analysis.sweeps.points.hyperbola import Array, log_steps_ratio
from noisescale_server.analysis.sweeps.turning.likelihood import BestTurn, TurningLikelihood

CRITICALS = 41
STARTS = 7


@dataclass(frozen=True, slots=True)
class TurningRegion(ProfileRegion):
    """Every curve that the data allow at a confidence level, for one quantity at a time, as N of them.

    Attributes:
        log_critical: log B_crit, [N], rising.
        level_low: Lowest level of the curve without its turn, [N].
        level_high: Highest level, [N].
        log_start: log s, [N].
        power: p, [N].
    """

    log_start: Array
    power: Array

    def log_steps(self, log_batch: float) -> tuple[float, float]:
        """Ends of log S at a batch size, the turn included."""
        rise = log_rise(self.log_critical, self.log_start, self.power, log_batch)
        return self.interval(lambda c: log_steps_ratio(c, log_batch) - log_steps_ratio(c, self.reference) + rise)

    def log_best_batch(self) -> tuple[float, float]:
        """Ends of log B_opt."""
        found = log_best_batch(self.log_critical, self.log_start, self.power)
        return float(found.min()), float(found.max())


def turning_region(
    likelihood: TurningLikelihood, grid: Array, *, least: float, allowed: float, best: float
) -> ProfileRegion:
    """The region where the deviance is at most `least` + `allowed`; a plain one where B_crit is open to a side."""
    cut = least + allowed
    turning = BestTurn(likelihood)
    outline = profile_region(turning, grid, least=least, allowed=allowed, best=best)
    if outline.is_open_above or outline.is_open_below:
        return outline
    low, high = outline.log_critical_batch()
    critical = np.repeat(np.union1d(np.linspace(low, high, CRITICALS), [best]), len(POWERS))
    power = np.tile(np.array(POWERS), critical.size // len(POWERS))
    start = likelihood.best_starts(critical, power)
    # the best curve itself is always inside; data without noise allow no other
    inside = (likelihood.at(critical, start, power).deviance <= cut) | _is_best(critical, power, turning, best)
    critical, start, power = critical[inside], start[inside], power[inside]
    lows, highs = _start_ends(likelihood, critical, start, power, cut)
    shares = np.linspace(0.0, 1.0, STARTS)
    starts = np.concatenate([lows[:, None] + (highs - lows)[:, None] * shares, start[:, None]], axis=1)
    criticals, powers = np.repeat(critical, STARTS + 1), np.repeat(power, STARTS + 1)
    level_low, level_high = likelihood.level_ends(criticals, starts.ravel(), powers, cut)
    return TurningRegion(
        criticals,
        level_low,
        level_high,
        likelihood.reference,
        is_open_below=False,
        is_open_above=False,
        log_start=starts.ravel(),
        power=powers,
    )


def _is_best(critical: Array, power: Array, turning: BestTurn, best: float) -> NDArray[np.bool_]:
    _, best_power = turning.best_turns(np.array([best]))
    found: NDArray[np.bool_] = (critical == best) & (power == best_power[0])
    return found


def _start_ends(
    likelihood: TurningLikelihood, critical: Array, start: Array, power: Array, cut: float
) -> tuple[Array, Array]:
    """The least and the largest log s at each pair of B_crit and p that the cut allows, or as far as is looked."""
    places = np.searchsorted(np.array(POWERS), power)
    ends = []
    for limit in (limits[places] for limits in likelihood.ends_of_starts()):

        def above(starts: Array) -> Array:
            return likelihood.at(critical, starts, power).deviance - cut

        is_open = above(limit) <= 0
        found = many_roots(_raised(above, is_open), start, limit, at_inside=above(start))
        ends.append(np.where(is_open, limit, found))
    return ends[0], ends[1]


def _raised(above: Callable[[Array], Array], where: NDArray[np.bool_]) -> Callable[[Array], Array]:
    """The function with 1 in its place where no root is looked for."""
    return lambda places: np.where(where, 1.0, above(places))
