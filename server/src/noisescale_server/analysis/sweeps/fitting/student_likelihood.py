"""Steps with now and then an outlier: Student's t with 4 degrees of freedom in place of the normal distribution.

Source: Lange, Little & Taylor 1989, "Robust statistical modeling using the t distribution", JASA 84: the choice of 4
degrees of freedom and the weights (ν + 1) / (ν + z²), whose repeated use climbs to the maximum.
"""

import numpy as np
from scipy.special import gammaln

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.fitting.likelihood import SMALLEST_VARIANCE, Profile, reference_of, shape
from noisescale_server.analysis.sweeps.fitting.observations import Observations
from noisescale_server.analysis.sweeps.points.hyperbola import Array

FREEDOM = 4.0
ITERATIONS = 300
SMALL_CHANGE = 1e-10
BISECTIONS = 45


class StudentLikelihood:
    """Profile likelihood with t-distributed log steps, one value a batch size or a run."""

    def __init__(self, data: Observations) -> None:
        """Take the sweep.

        Raises:
            AnalysisError: If values are censored, or are means of several.
        """
        if data.has_censored or np.any(data.count != 1):
            raise AnalysisError("a robust fit needs one known number of steps a batch size: leave out censored runs")
        self._data = data
        self.reference = reference_of(data)

    def profile(self, log_critical: Array, exponent: Array | float = 1.0) -> Profile:
        """The best fit at each log B_crit."""
        residual = self._data.log_steps - shape(log_critical, self._data.log_batch, self.reference, exponent)
        level = np.median(residual, axis=1)
        variance = np.maximum(residual.var(axis=1), SMALLEST_VARIANCE)
        for _ in range(ITERATIONS):
            weight = _weights(residual - level[:, None], variance)
            level = (weight * residual).sum(1) / weight.sum(1)
            before, variance = variance, _variance(weight, residual - level[:, None])
            if np.all(np.abs(variance - before) <= SMALL_CHANGE * before):
                break
        return Profile(self._deviance(residual - level[:, None], variance), level, np.sqrt(variance))

    def level_ends(self, log_critical: Array, cut: float) -> tuple[Array, Array]:
        """The levels between which the deviance is at most `cut`, by bisection outwards from the best."""
        best = self.profile(log_critical)
        residual = self._data.log_steps - shape(log_critical, self._data.log_batch, self.reference)
        ends = []
        for side in (-1.0, 1.0):
            far = side * best.scatter
            while np.any(inside := self._deviance_at(residual - (best.level + far)[:, None]) <= cut):
                far = np.where(inside, 2 * far, far)
            near = np.zeros_like(far)
            for _ in range(BISECTIONS):
                middle = (near + far) / 2
                inside = self._deviance_at(residual - (best.level + middle)[:, None]) <= cut
                near, far = np.where(inside, middle, near), np.where(inside, far, middle)
            ends.append(np.where(best.deviance <= cut + SMALL_CHANGE, best.level + near, np.nan))
        return ends[0], ends[1]

    def _deviance_at(self, residual: Array) -> Array:
        """The deviance of residuals with the best noise."""
        variance = np.maximum((residual**2).mean(1), SMALLEST_VARIANCE)
        for _ in range(ITERATIONS):
            before, variance = variance, _variance(_weights(residual, variance), residual)
            if np.all(np.abs(variance - before) <= SMALL_CHANGE * before):
                break
        return self._deviance(residual, variance)

    def _deviance(self, residual: Array, variance: Array) -> Array:
        z_sq = residual**2 / variance[:, None]
        constant = gammaln((FREEDOM + 1) / 2) - gammaln(FREEDOM / 2) - np.log(np.pi * FREEDOM) / 2
        log_density = constant - np.log(variance)[:, None] / 2 - (FREEDOM + 1) / 2 * np.log1p(z_sq / FREEDOM)
        deviance: Array = -2 * log_density.sum(1)
        return deviance


def _weights(residual: Array, variance: Array) -> Array:
    weight: Array = (FREEDOM + 1) / (FREEDOM + residual**2 / variance[:, None])
    return weight


def _variance(weight: Array, residual: Array) -> Array:
    variance: Array = np.maximum((weight * residual**2).mean(axis=1), SMALLEST_VARIANCE)
    return variance
