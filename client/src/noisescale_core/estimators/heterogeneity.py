"""Do ranks see different data? The F-test of noise between groups against noise inside them, and its sequential form.

Small batches (micro-batches) lie in ranks. A1 is their mean |g|², A2 the mean |ḡ_r|² of the ranks, A3 = |ḡ|², each mean
weighted by examples. Where all are drawn from the same data both mean squares below estimate tr Σ, and their ratio F
is 1 but for chance. A rank with other data raises the upper one: noise measured over ranks is then overstated. Ranks
with the same data, or some of it, lower it: noise is understated, and the step has fewer examples than it counts.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.signal import normal_deviate

HETEROGENEITY_Z = 4.75
"""Normal deviate that the sequential test must reach: about one false alarm in 10,000 runs that look at every step."""

REPEATED_Z = -5.5
"""Normal deviate at which the noise between ranks is too small. Mean squares are skewed, so this side asks for more,
and for 64 differences. Simulated with -4.75, 4,000 runs of 1,000 looks each: at most 5 false alarms in 10,000 runs from
an effective dimension of 4 on; of 1 and 2, with two ranks of 32 micro-batches, up to 50."""

REPEATED_DIFFERENCES = 64
"""Differences from which that is said."""

WARM_UP_STEPS = 8
"""Steps that only set the scale of the differences."""

SCALE_MEMORY = 64
"""Steps over which that scale is averaged."""

IDENTICAL = 1e-6
"""Share of the groups' squared norm below which their spread is rounding and not noise: up to 256 equal gradients,
added up in fp32, leave 3e-7 of it."""


@dataclass(frozen=True, slots=True)
class MeanSquares:
    """Two estimates of tr Σ in one step; both are unbiased where all small batches come from the same data.

    Attributes:
        between: From the spread of the ranks' mean gradients, N (A2 - A3) / (R - 1).
        within: From the spread of the small batches inside the ranks, N (A1 - A2) / (K - R).
        num_ranks: R.
        num_small_batches: K, in all ranks together.
    """

    between: float
    within: float
    num_ranks: int
    num_small_batches: int


def mean_squares(
    *,
    small_sq_norm: float,
    rank_sq_norm: float,
    big_sq_norm: float,
    num_ranks: int,
    num_small_batches: int,
    batch_size: float,
) -> MeanSquares:
    """The mean squares between and within ranks of one step, for small batches of any sizes.

    Args:
        small_sq_norm: A1 = Σ n |g|² / N over all small batches of all ranks, n their examples.
        rank_sq_norm: A2 = Σ n_r |ḡ_r|² / N, ḡ_r the rank's own mean gradient before it is averaged over ranks.
        big_sq_norm: A3 = |ḡ|², of the mean gradient over all examples.
        num_ranks: R.
        num_small_batches: K, in all ranks together.
        batch_size: N, examples of the step.

    Raises:
        EstimationError: With fewer than two ranks, no rank with two small batches, or without examples.

    Source: analysis of variance: E A1 = |G|² + K tr Σ / N, E A2 = |G|² + R tr Σ / N, E A3 = |G|² + tr Σ / N.
    """
    if num_ranks < 2 or num_small_batches <= num_ranks:
        raise EstimationError(
            f"needs 2 ranks and more small batches than ranks, got {num_ranks} ranks and {num_small_batches}: "
            "with one small batch a rank, noise and different data look the same; use gradient accumulation"
        )
    if not batch_size > 0:
        raise EstimationError(f"batch_size must be positive, got {batch_size:g}: count the examples of the step")
    return MeanSquares(
        between=batch_size * (rank_sq_norm - big_sq_norm) / (num_ranks - 1),
        within=batch_size * (small_sq_norm - rank_sq_norm) / (num_small_batches - num_ranks),
        num_ranks=num_ranks,
        num_small_batches=num_small_batches,
    )


@dataclass(frozen=True, slots=True)
class RankHeterogeneity:
    """The test over the steps so far: sums only, in O(1) memory; `plus` adds a step and returns the new sums.

    D = (between - within) / scale of a step has mean 0 where ranks see the same data, the scale coming from the steps
    before. The t-statistic of these D needs no effective dimension and no normal gradients, and one may look at it
    after every step.

    Attributes:
        num_steps: Steps added.
        between: Σ between.
        within: Σ within.
        scale: Mean of `within` over about the last 64 steps.
        num_differences: n, steps after the first 8.
        difference: Σ D.
        difference_sq: Σ D².
    """

    num_steps: int = 0
    between: float = 0.0
    within: float = 0.0
    scale: float = 0.0
    num_differences: int = 0
    difference: float = 0.0
    difference_sq: float = 0.0

    def plus(self, step: MeanSquares) -> "RankHeterogeneity":
        """The sums with one step more; a step that is not finite is left out."""
        if not (math.isfinite(step.between) and math.isfinite(step.within)):
            return self
        is_counted = self.num_steps >= WARM_UP_STEPS and self.scale > 0
        difference = (step.between - step.within) / self.scale if is_counted else 0.0
        return RankHeterogeneity(
            num_steps=self.num_steps + 1,
            between=self.between + step.between,
            within=self.within + step.within,
            scale=self.scale + (step.within - self.scale) / min(self.num_steps + 1, SCALE_MEMORY),
            num_differences=self.num_differences + is_counted,
            difference=self.difference + difference,
            difference_sq=self.difference_sq + difference * difference,
        )

    @property
    def f(self) -> float | None:
        """F over all steps, Σ between / Σ within: about 1, or how many times ranks overstate tr Σ."""
        return self.between / self.within if self.within > 0 else None

    @property
    def z(self) -> float:
        """The normal deviate of the t-statistic of D; 0 before 16 steps."""
        return normal_deviate(self.num_differences, self.difference, self.difference_sq)

    @property
    def is_heterogeneous(self) -> bool:
        """Whether ranks see different data, beyond chance."""
        return self.z >= HETEROGENEITY_Z

    @property
    def is_repeated(self) -> bool:
        """Whether ranks see the same data, or some of it, beyond chance."""
        return self.num_differences >= REPEATED_DIFFERENCES and self.z <= REPEATED_Z


def are_duplicates(*, small_sq_norm: float, big_sq_norm: float) -> bool:
    """Whether all groups of a step had the same gradient: the same data on every rank, or measured after all-reduce.

    A few such steps in a row are a bug of the training job and no small noise scale.

    Args:
        small_sq_norm: Mean |g_k|² over the groups, weighted by their sizes; never below |ḡ|² but for rounding.
        big_sq_norm: |ḡ|², with the same loss scaling.
    """
    return small_sq_norm > 0 and abs(small_sq_norm - big_sq_norm) <= IDENTICAL * small_sq_norm
