"""Gradients with a power-law covariance spectrum and an exactly known noise scale, frozen or moving.

Example i has the gradient G + s_i Λ^{1/2} ξ_i with ξ_i standard normal. With s_i = 1 that is Gaussian; with a few large
s_i it is heavy-tailed. Group means and per-example norms are drawn from their exact joint distribution: a mean of
m examples of equal s is normal, and the squares about it are a chi-square of m - 1 degrees of freedom by coordinate.
"""

# R replicates, L leaves, D coordinates, C classes of s

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.truth.step import Array, Step, make_step, sq_norm

GAUSSIAN = ((1.0, 1.0),)
HEAVY_TAILED = ((0.99, 0.5), (0.01, 50.5))
"""One example in a hundred carries half of tr Σ; the kurtosis E s⁴ / (E s²)² is 26."""

CHUNK_VALUES = 4_000_000
"""Values in the largest array of a chunk of replicates."""


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """λ_j ∝ 1 / j and G with D equal entries, |G|² = 1 at the start.

    With D = 512 this gives tr²Σ / tr Σ² = 28 and GᵀΣG / (tr Σ |G|²) = 1 / 512.

    Attributes:
        name: As tables call it.
        noise_scale: B = tr Σ / |G|² at the start.
        batch_size: Examples a step.
        num_steps: Steps in the window.
        variances: (share of the examples, s²) of each class; the mean of s² must be 1.
        learning_rate: Of SGD on a quadratic loss with Hessian diag(1 / j); 0 freezes the parameters.
        group_counts: The K for which a step has groups.
        dimension: D.
    """

    name: str
    noise_scale: float
    batch_size: int
    num_steps: int
    variances: tuple[tuple[float, float], ...] = GAUSSIAN
    learning_rate: float = 0.0
    group_counts: tuple[int, ...] = (2, 8, 32)
    dimension: int = 512

    family: ClassVar[str] = "power law"

    @property
    def is_moving(self) -> bool:
        """Whether the parameters are trained."""
        return self.learning_rate > 0

    @property
    def replicates_at_once(self) -> int:
        """As many as keep the largest array small."""
        return max(1, CHUNK_VALUES // (self.group_counts[-1] * self.dimension))

    def steps(self, replicates: int, seed: int) -> Iterator[Step]:
        """The steps of so many independent trainings."""
        generator = np.random.default_rng(seed)
        decay = 1 / np.arange(1, self.dimension + 1)
        spectrum = (self.noise_scale * decay / decay.sum()).astype(np.float32)
        true_gradient = np.full((replicates, self.dimension), self.dimension**-0.5, dtype=np.float32)
        for _ in range(self.num_steps):
            leaves, sum_sq_about_leaves = self._sample(true_gradient, spectrum, generator)
            leaf_size = self.batch_size / leaves.shape[1]
            step = make_step(
                leaves,
                batch_size=self.batch_size,
                per_example_sq_norm=(leaf_size * sq_norm(leaves).sum(1) + sum_sq_about_leaves) / self.batch_size,
                trace_cov=np.full(replicates, float(spectrum.sum(dtype=np.float64))),
                grad_sq_norm=sq_norm(true_gradient),
                group_counts=self.group_counts,
            )
            yield step
            if self.is_moving:
                true_gradient = true_gradient - self.learning_rate * decay.astype(np.float32) * step.gradient

    def _sample(self, true_gradient: Array, spectrum: Array, generator: np.random.Generator) -> tuple[Array, Array]:
        """Leaf means [R, L, D], and [R] the sum over leaves and examples of |g_i - leaf mean|²."""
        replicates, dimension = true_gradient.shape
        num_leaves = self.group_counts[-1]
        shares, variances = np.array(self.variances).T
        counts = generator.multinomial(self.batch_size // num_leaves, shares, size=(replicates, num_leaves))
        deviation = np.zeros((replicates, num_leaves, dimension), dtype=np.float32)
        sum_sq = np.zeros(replicates)
        for count, variance in zip(np.moveaxis(counts, -1, 0), variances, strict=True):
            present = np.maximum(count, 1)
            mean = generator.standard_normal(deviation.shape, dtype=np.float32)
            mean *= np.sqrt(variance / present, dtype=np.float32)[:, :, None] * np.sqrt(spectrum)
            mean *= (count > 0)[:, :, None]
            # Σ |z_i|² about 0: the class mean's share and a chi-square for the rest.
            sum_sq += (count * sq_norm(mean)).sum(1)
            sum_sq += variance * chi_square(np.maximum(count - 1, 0).sum(1), spectrum, generator)
            mean *= (count / counts.sum(-1))[:, :, None].astype(np.float32)
            deviation += mean
        leaf_size = self.batch_size / num_leaves
        return deviation + true_gradient[:, None], sum_sq - leaf_size * sq_norm(deviation).sum(1)


def chi_square(degrees_of_freedom: NDArray[np.integer], spectrum: Array, generator: np.random.Generator) -> Array:
    """Σ_j λ_j χ²_j for each replicate, [R]."""
    draws = generator.standard_gamma(
        np.broadcast_to(degrees_of_freedom[:, None] / 2, (len(degrees_of_freedom), len(spectrum)))
    )
    return np.asarray(2 * draws @ spectrum.astype(np.float64))
