"""How a loop weighs small batches of different sizes, read off their squared norms.

A small batch of n examples adds s = w g to the step's gradient, with E|g|² = |G|² + tr Σ / n. A weight n / N makes
|s|² grow like n² where the gradient dominates and like n where noise does; an equal weight 1 / K leaves it as it is, or
makes it fall like 1 / n. So the slope of log |s|² over log n lies in [1, 2] or in [-1, 0], whatever the noise scale is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN = 0.5
"""The slope in the middle of the gap."""

ROUNDING = 1e-12
"""Share of Σ (log n)² that is left where all sizes are the same."""

MIN_STEPS = 8

NUM_STANDARD_ERRORS = 4.0
"""Distance from the middle that decides. Every step looks, so 2 would err in one run of several."""


@dataclass(frozen=True, slots=True)
class SizeSlope:
    """Of one step: sums over its small batches of the deviations from their means.

    Attributes:
        covariance: Σ Δlog n · Δlog |s|².
        variance: Σ (Δlog n)².
    """

    covariance: float
    variance: float


@dataclass(frozen=True, slots=True)
class SizeWeighting:
    """Sums over steps.

    Attributes:
        num_steps: With small batches of different sizes.
        covariance: Σ of that of each step.
        variance: Σ of that of each step.
        covariance_sq: Σ of its square.
        cross: Σ covariance · variance.
        variance_sq: Σ of its square.
    """

    num_steps: int = 0
    covariance: float = 0.0
    variance: float = 0.0
    covariance_sq: float = 0.0
    cross: float = 0.0
    variance_sq: float = 0.0

    def plus(self, step: SizeSlope) -> "SizeWeighting":
        """With one more step."""
        return SizeWeighting(
            self.num_steps + 1,
            self.covariance + step.covariance,
            self.variance + step.variance,
            self.covariance_sq + step.covariance**2,
            self.cross + step.covariance * step.variance,
            self.variance_sq + step.variance**2,
        )

    @property
    def slope(self) -> float:
        """Of log |s|² over log n; needs a step."""
        return self.covariance / self.variance

    @property
    def standard_error(self) -> float:
        """Of the slope, from the spread of the steps; needs two.

        Source: the variance of a ratio of sums (Cochran 1977, "Sampling techniques", section 2.11).
        """
        slope, count = self.slope, self.num_steps
        residuals = self.covariance_sq - 2 * slope * self.cross + slope * slope * self.variance_sq
        return math.sqrt(max(0.0, residuals) * count / (count - 1)) / self.variance

    @property
    def is_equal(self) -> bool:
        """Whether small batches of different sizes are averaged with equal weight, beyond doubt."""
        return self._distance < 0

    @property
    def is_by_size(self) -> bool:
        """Whether they are weighted by their sizes, beyond doubt."""
        return self._distance > 0

    @property
    def _distance(self) -> float:
        """From the middle of the gap, and 0 within the doubt around it."""
        if self.num_steps < MIN_STEPS:
            return 0.0
        away = self.slope - BETWEEN
        return away if abs(away) > NUM_STANDARD_ERRORS * self.standard_error else 0.0


def slope_of_sums(count: float, x: float, y: float, xx: float, xy: float) -> SizeSlope | None:
    """The slope of one step from sums that add over ranks; None where its small batches do not tell.

    Args:
        count: Small batches.
        x: Σ log n, n the examples of each.
        y: Σ log |s|².
        xx: Σ (log n)².
        xy: Σ log n · log |s|².
    """
    if not (count >= 2 and math.isfinite(x) and math.isfinite(y) and math.isfinite(xy)):
        return None
    variance = xx - x * x / count
    if variance <= ROUNDING * xx:
        return None
    return SizeSlope(xy - x * y / count, variance)


def size_slope(sq_norms: Sequence[float], sizes: Sequence[float]) -> SizeSlope | None:
    """The slope of one step; None where its small batches do not tell.

    Args:
        sq_norms: |s|² of each small batch, as it adds to the step's gradient; in any one scale.
        sizes: Their examples, or counted tokens.
    """
    pairs = [
        (math.log(size), math.log(sq_norm))
        for sq_norm, size in zip(sq_norms, sizes, strict=True)
        if size > 0 and 0 < sq_norm < math.inf
    ]
    if len(pairs) < 2:
        return None
    mean_size = math.fsum(x for x, _ in pairs) / len(pairs)
    mean_sq_norm = math.fsum(y for _, y in pairs) / len(pairs)
    variance = math.fsum((x - mean_size) ** 2 for x, _ in pairs)
    if not variance > 0:
        return None
    return SizeSlope(math.fsum((x - mean_size) * (y - mean_sq_norm) for x, y in pairs), variance)
