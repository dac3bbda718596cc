"""Profile likelihoods of a sweep: for a given log B_crit the best level of the curve and the best noise.

The level is log S at a batch size amid the sweep, not log S_min: it stays finite where B_crit goes to 0 or to infinity,
so one-sided profiles are found and not missed.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from noisescale_server.analysis.sweeps.fitting.observations import Observations
from noisescale_server.analysis.sweeps.points.hyperbola import Array, log_steps_ratio

SMALLEST_VARIANCE = 1e-24
"""Data without any noise have a likelihood without a maximum; this is below the rounding of log S."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The best fit at each of G values of log B_crit, all [G].

    Attributes:
        deviance: -2 log likelihood, up to a constant of the sweep.
        level: log S at the reference batch size.
        scatter: Standard deviation of log S of a single value, as maximum likelihood has it.
    """

    deviance: Array
    level: Array
    scatter: Array


class Likelihood(Protocol):
    """What a noise model offers; `log_critical` is [G] and `exponent` the ν of the curve, one or [G]."""

    @property
    def reference(self) -> float:
        """Log B at which the level is meant."""
        ...

    def profile(self, log_critical: Array, exponent: Array | float = 1.0) -> Profile:
        """The best fit at each log B_crit."""
        ...

    def level_ends(self, log_critical: Array, cut: float) -> tuple[Array, Array]:
        """The levels between which the deviance is at most `cut`, [G] each; NaN where it is above throughout."""
        ...


def reference_of(data: Observations) -> float:
    """Log B amid the sweep."""
    return float(np.mean(data.all_log_batch))


def shape(log_critical: Array, log_batch: Array, reference: float, exponent: Array | float = 1.0) -> Array:
    """Log S(B) - log S(reference) of the curve, [G, K] from [G] and [K]; one exponent, or [G] of them."""
    ratio = log_steps_ratio(log_critical[:, None], log_batch[None, :], np.reshape(exponent, (-1, 1)))
    return ratio - log_steps_ratio(log_critical, reference, exponent)[:, None]


class NormalLikelihood:
    """Log-normal steps that are all known: every profile is a weighted sum of squares."""

    def __init__(self, data: Observations) -> None:
        self._data = data
        self.reference = reference_of(data)

    def profile(self, log_critical: Array, exponent: Array | float = 1.0) -> Profile:
        """The best fit at each log B_crit."""
        data = self._data
        residual = data.log_steps - shape(log_critical, data.log_batch, self.reference, exponent)
        level = residual @ data.weight / data.weight.sum()
        squares = (residual - level[:, None]) ** 2 @ data.weight + data.squares
        variance = np.maximum(squares / data.num_values, SMALLEST_VARIANCE)
        return Profile(data.num_values * np.log(variance), level, np.sqrt(variance))

    def level_ends(self, log_critical: Array, cut: float) -> tuple[Array, Array]:
        """The levels between which the deviance is at most `cut`."""
        data = self._data
        found = self.profile(log_critical)
        room = data.num_values * (np.exp(cut / data.num_values) - found.scatter**2) / data.weight.sum()
        half = np.sqrt(np.where(room >= 0, room, np.nan))
        return found.level - half, found.level + half
