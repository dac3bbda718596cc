"""Sweeps whose examples rise again at small batches, by a known share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint

CRITICAL_BATCH = 256.0
MIN_STEPS = 1000.0

Shape = Callable[[np.ndarray, float], np.ndarray]
"""From batch sizes and a height to examples, in units of E_0."""


def hyperbola(sizes: np.ndarray) -> np.ndarray:
    return 1 + sizes / CRITICAL_BATCH


def power(exponent: float) -> Shape:
    """E_0 (1 + B / B_crit + (s / B)^p)."""
    return lambda sizes, height: hyperbola(sizes) + height * (sizes[0] / sizes) ** exponent


USUAL = power(1.5)


def lifted(num: int) -> Shape:
    """The hyperbola, with the `num` smallest batch sizes lifted by shares that fall evenly to 0."""
    return lambda sizes, height: hyperbola(sizes) * (1 + height * np.clip(1 - np.arange(sizes.size) / num, 0, None))


@dataclass(frozen=True)
class TurningSetting:
    """Batch sizes an octave apart; examples at the smallest are `rise` more than at the best one.

    critical_place: of B_crit among the batch sizes, counted from 0. scatter: sd of log S of a single run.
    """

    rise: float
    scatter: float
    shape: Shape = USUAL
    critical_place: float = 4.0
    num_batch_sizes: int = 7
    octaves_apart: float = 1.0

    def batch_sizes(self) -> np.ndarray:
        places = np.arange(self.num_batch_sizes) - self.critical_place
        return CRITICAL_BATCH * 2.0 ** (self.octaves_apart * places)

    def examples(self) -> np.ndarray:
        """In units of E_0."""
        sizes = self.batch_sizes()
        if self.rise == 0:
            return hyperbola(sizes)

        def above(height: float) -> float:
            examples = self.shape(sizes, height)
            return float(examples[0] / examples.min() - 1 - self.rise)

        return self.shape(sizes, brentq(above, 0.0, 100.0))

    def best_batch(self) -> float:
        """B_opt of the turn by (s / B)^1.5."""
        sizes = self.batch_sizes()
        height = self.examples()[0] - hyperbola(sizes)[0]
        return float((1.5 * height * CRITICAL_BATCH * sizes[0] ** 1.5) ** 0.4)

    def sweep(self, rng: np.random.Generator | None = None) -> list[SweepPoint]:
        sizes = self.batch_sizes()
        steps = MIN_STEPS * CRITICAL_BATCH * self.examples() / sizes
        if rng is not None:
            steps = steps * np.exp(self.scatter * rng.standard_normal(sizes.size))
        return [SweepPoint(float(b), Repeats.from_steps([float(s)])) for b, s in zip(sizes, steps, strict=True)]
