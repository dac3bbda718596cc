"""How likely a turning curve is: log-normal steps, the level and the noise at their best."""

import math

import numpy as np

from noisescale_server.analysis.sweeps.fitting.likelihood import SMALLEST_VARIANCE, Profile, reference_of, shape
from noisescale_server.analysis.sweeps.fitting.observations import Observations
from noisescale_server.analysis.sweeps.fitting.turning_curve import POWERS, log_prior, log_rise
from noisescale_server.analysis.sweeps.points.hyperbola import Array

LEAST_RISE, MOST_RISE = math.log(1e-3), math.log(100.0)
"""Ends between which (s / B)^p is looked for at the smallest batch size: below the first nothing of it is seen."""

RISES = 25
ZOOMS = 4
ZOOM_PLACES = 5


class TurningLikelihood:
    """Likelihood of (B_crit, s, p), in logarithms of the first two. The level is that of the curve without its turn.

    Args:
        data: Known steps only, one value a batch size.
    """

    def __init__(self, data: Observations) -> None:
        self._data = data
        self._smallest = float(data.log_batch.min())
        self.reference = reference_of(data)

    def at(self, log_critical: Array, log_start: Array, power: Array) -> Profile:
        """The best level and noise at each of N curves, all [N]; the deviance counts what is known of p before."""
        data, residual = self._data, self._residual(log_critical, log_start, power)
        level = residual @ data.weight / data.weight.sum()
        squares = (residual - level[:, None]) ** 2 @ data.weight
        variance = np.maximum(squares / data.num_values, SMALLEST_VARIANCE)
        deviance = data.num_values * np.log(variance) - 2 * log_prior(power)
        return Profile(deviance, level, np.sqrt(variance))

    def level_ends(self, log_critical: Array, log_start: Array, power: Array, cut: float) -> tuple[Array, Array]:
        """The levels between which the deviance is at most `cut`, [N] each; the best one where it never is."""
        data, found = self._data, self.at(log_critical, log_start, power)
        largest = np.exp((cut + 2 * log_prior(power)) / data.num_values)
        room = data.num_values * (largest - found.scatter**2) / data.weight.sum()
        half = np.sqrt(np.maximum(room, 0.0))
        return found.level - half, found.level + half

    def best_starts(self, log_critical: Array, power: Array) -> Array:
        """The most likely log s for each pair of log B_crit and p, [N]: a grid, and finer ones about its best."""
        rises, rows = np.linspace(LEAST_RISE, MOST_RISE, RISES), np.arange(log_critical.size)
        best, spacing = np.zeros(log_critical.size), float(rises[1] - rises[0])
        places = np.broadcast_to(rises, (log_critical.size, RISES))
        for _ in range(1 + ZOOMS):
            deviance = self._deviances(log_critical, power, places)
            best = places[rows, deviance.argmin(axis=1)]
            around = np.linspace(-spacing, spacing, ZOOM_PLACES)
            places = np.clip(best[:, None] + around, LEAST_RISE, MOST_RISE)
            spacing = float(around[1] - around[0])
        starts: Array = self._smallest + best / power
        return starts

    def ends_of_starts(self) -> tuple[Array, Array]:
        """For each power the least and the largest log s that are looked at."""
        powers = np.array(POWERS)
        return self._smallest + LEAST_RISE / powers, self._smallest + MOST_RISE / powers

    def _deviances(self, log_critical: Array, power: Array, log_rises: Array) -> Array:
        """At log (s / B)^p of the smallest batch, [N, M]."""
        num = log_rises.shape[1]
        critical, powers = np.repeat(log_critical, num), np.repeat(power, num)
        return self.at(critical, self._smallest + log_rises.ravel() / powers, powers).deviance.reshape(-1, num)

    def _residual(self, log_critical: Array, log_start: Array, power: Array) -> Array:
        """Log S less the curve's shape, [N, K]."""
        data = self._data
        rise = log_rise(log_critical[:, None], log_start[:, None], power[:, None], data.log_batch[None, :])
        found: Array = data.log_steps - shape(log_critical, data.log_batch, self.reference) - rise
        return found


class BestTurn:
    """The likelihood of log B_crit alone, with turn, level and noise at their best; as a plain sweep's is asked.

    Args:
        likelihood: Of the turning curve.
        powers: Values of p to choose from.
    """

    def __init__(self, likelihood: TurningLikelihood, powers: tuple[float, ...] = POWERS) -> None:
        self.likelihood = likelihood
        self.reference = likelihood.reference
        self._powers = powers

    def profile(self, log_critical: Array, exponent: Array | float = 1.0) -> Profile:
        """The best fit at each log B_crit; the hyperbola's exponent stays 1 here."""
        del exponent
        return self.likelihood.at(log_critical, *self.best_turns(log_critical))

    def best_turns(self, log_critical: Array) -> tuple[Array, Array]:
        """The most likely log s and p at each log B_crit, [G] each."""
        powers = np.repeat(np.array(self._powers), log_critical.size)
        critical = np.tile(log_critical, len(self._powers))
        starts = self.likelihood.best_starts(critical, powers)
        deviance = self.likelihood.at(critical, starts, powers).deviance.reshape(len(self._powers), -1)
        place = deviance.argmin(axis=0) * log_critical.size + np.arange(log_critical.size)
        return starts[place], powers[place]

    def level_ends(self, log_critical: Array, cut: float) -> tuple[Array, Array]:
        """Levels of the best turn at each log B_crit."""
        return self.likelihood.level_ends(log_critical, *self.best_turns(log_critical), cut)
