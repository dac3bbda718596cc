"""Do the small batches of a step come from the same data, whatever their place in it?

Samples of the same data may change places, so over the steps no place has longer gradients than another, and |G|² is
not negative. Different terms of one loss (a discriminator's real and generated half), or sorted data, break that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

ORDER_Z = 4.75
"""|Σ Y| / √Σ Y² that one of the three tests must reach; a step adds at most 1 to its square, so it takes 23 steps."""

MATERIAL = 0.05
"""Least contrast of squared norms that matters: places may differ by a little in any long run."""


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Of the squared norms of one step's small batches, each between -1 and 1; of mean 0 where they may change places.

    Attributes:
        alternating: (Σ of every other one - Σ of those between) / Σ.
        halves: (Σ of the first half - Σ of the second) / Σ.
    """

    alternating: float
    halves: float


def contrasts(sq_norms: Sequence[float]) -> Contrasts | None:
    """The contrasts of one step; None where its small batches have none.

    Args:
        sq_norms: |s|² of each small batch in its order, all of one size; of an odd number the middle one, or the last,
            is left out.
    """
    half = len(sq_norms) // 2
    if half == 0:
        return None
    even, odd = math.fsum(sq_norms[0 : 2 * half : 2]), math.fsum(sq_norms[1 : 2 * half : 2])
    first, second = math.fsum(sq_norms[:half]), math.fsum(sq_norms[-half:])
    if not (0 < even + odd < math.inf and 0 < first + second < math.inf):
        return None
    return Contrasts((even - odd) / (even + odd), (first - second) / (first + second))


@dataclass(frozen=True, slots=True)
class _Mean:
    """Sums of numbers between -1 and 1."""

    count: int = 0
    total: float = 0.0
    total_sq: float = 0.0

    def plus(self, value: float) -> "_Mean":
        return _Mean(self.count + 1, self.total + value, self.total_sq + value * value)

    @property
    def z(self) -> float:
        """Σ Y / √Σ Y²; where Y is symmetric about 0 it exceeds x with at most the chance exp(-x²/2).

        Source: Efron 1969, "Student's t-test under symmetry conditions", JASA 64.
        """
        return self.total / math.sqrt(self.total_sq) if self.total_sq > 0 else 0.0

    @property
    def is_material(self) -> bool:
        return self.count > 0 and abs(self.total) > MATERIAL * self.count and abs(self.z) >= ORDER_Z


@dataclass(frozen=True, slots=True)
class PassOrder:
    """The tests over the steps so far: sums only; `plus` adds a step and returns the new sums.

    Attributes:
        alternating: Of that contrast.
        halves: Of that contrast.
        signal: |G|² in units of the small batches' mean squared norm. It is skewed to the right where gradients have
            one dimension or two, so that pure noise raises an alarm in 1 to 4 of 1,000 runs of 600 steps there.
    """

    alternating: _Mean = _Mean()
    halves: _Mean = _Mean()
    signal: _Mean = _Mean()

    def plus(self, step: Contrasts | None, signal: float) -> "PassOrder":
        """The sums with one step more.

        Args:
            step: None where the norms of single small batches are not known.
            signal: Estimate of |G|² divided by the mean |g|² of the small batches; one that is not finite is left out.
        """
        return PassOrder(
            self.alternating if step is None else self.alternating.plus(step.alternating),
            self.halves if step is None else self.halves.plus(step.halves),
            self.signal.plus(signal) if math.isfinite(signal) else self.signal,
        )

    @property
    def is_ordered(self) -> bool:
        """Whether small batches differ by their place in the step, or point away from each other, beyond chance."""
        return self.alternating.is_material or self.halves.is_material or self.signal.z <= -ORDER_Z
