"""Do the examples of one step explain how far the gradients of neighbouring steps are apart?

Per-example norms, and parts of a forward, take the examples of a batch for independent. Where they are, half the
squared distance of two steps' gradients is on average tr Σ / B, and what the gradient itself has moved comes on top.
Examples that share data (mixup, several frames or crops of one recording) make the distance larger; a loss that
compares the examples of a batch, or divides by a sum over it, makes it smaller or larger. Within one step neither
shows: examples that depend on each other in no order look like independent ones with a longer gradient.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from noisescale_core.estimators.signal import normal_deviate

LAGS = (1, 2, 3, 4)
"""Measured steps between the gradients that are compared."""

MATERIAL = 0.25
"""Share of tr Σ / B that must be missing, or too much."""

NEIGHBOUR_Z = 4.0
"""Normal deviate that each lag must reach, one chance in 30,000 at a single look."""

FEWEST_PAIRS = 24
"""Pairs of each lag from which something is said."""

SAME_DATA = -0.9
"""Below this, neighbouring steps see the same examples, as in training on one batch: nothing can be said of these."""

FLAT = 0.4
"""Share of it by which what is too much may differ between lags. Examples that share data add the same at each lag. A
gradient that moves adds more from lag to lag, or, at the edge of stability, most at the first."""


@dataclass(frozen=True, slots=True)
class StepDistances:
    """One step beside those before it, over the parameters that are compared.

    Attributes:
        half_sq_distances: ½ |ḡ_t - ḡ_(t-k)|² for each lag k; fewer where there are fewer steps before it.
        noise: tr Σ / B, as the small batches of the step have it.
    """

    half_sq_distances: Sequence[float]
    noise: float


@dataclass(slots=True)
class _Lag:
    """Sums over the pairs of one lag."""

    num: int = 0
    distance: float = 0.0
    noise: float = 0.0
    difference: float = 0.0
    difference_sq: float = 0.0

    def add(self, distance: float, noise: float) -> None:
        self.num += 1
        self.distance += distance
        self.noise += noise
        difference = (distance - noise) / noise
        self.difference += difference
        self.difference_sq += difference * difference

    @property
    def excess(self) -> float:
        """Σ distance / Σ noise - 1."""
        return self.distance / self.noise - 1

    @property
    def z(self) -> float:
        # a step is in two pairs of a lag, so half of them are independent
        return normal_deviate(self.num, self.difference, self.difference_sq) / math.sqrt(2)


@dataclass(slots=True)
class NeighbouringSteps:
    """The comparison over the steps so far: sums only."""

    _lags: list[_Lag] = field(default_factory=lambda: [_Lag() for _ in LAGS])
    _noises: list[float] = field(default_factory=list)

    def add(self, step: StepDistances) -> None:
        """Add a step; one whose numbers are not finite, or that has no noise, is left out and ends the row of steps."""
        numbers = (step.noise, *step.half_sq_distances)
        if not all(map(math.isfinite, numbers)) or step.noise <= 0:
            self._noises = []
            return
        # the noise of both steps of a pair, as theirs is what their distance comes from
        for lag, before, distance in zip(self._lags, reversed(self._noises), step.half_sq_distances, strict=False):
            lag.add(distance, (step.noise + before) / 2)
        self._noises = [*self._noises[-len(LAGS) + 1 :], step.noise]

    @property
    def excess(self) -> float | None:
        """How much more than tr Σ / B neighbouring gradients scatter, as a share of it, where that is no chance.

        Positive: tr Σ is understated by about this. Negative: overstated. None: the examples explain it, or a gradient
        that moves might, or nothing can be said yet.
        """
        if any(lag.num < FEWEST_PAIRS for lag in self._lags):
            return None
        found = [lag.excess for lag in self._lags]
        if max(found) <= -MATERIAL:  # nothing that moves makes a distance smaller
            is_sure = max(lag.z for lag in self._lags) <= -NEIGHBOUR_Z and found[0] > SAME_DATA
            return max(found) if is_sure else None
        least = min(found)
        is_sure = min(lag.z for lag in self._lags) >= NEIGHBOUR_Z and max(found) - least <= FLAT * least
        return least if least >= MATERIAL and is_sure else None
