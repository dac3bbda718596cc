"""What one optimizer step gives: squared norms and the sizes they belong to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.neighbouring_steps import StepDistances
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.order_of_passes import Contrasts
from noisescale_core.estimators.size_weighting import SizeSlope

BatchSizeSource = Literal["argument", "micro_batch", "inferred"]

Weighting = Literal["by_size", "equal"]


@dataclass(frozen=True, slots=True)
class SizeSums:
    """Sums over the small batches of a step, of one process or of all; small batches without an example left out.

    Attributes:
        num: K.
        num_sized: Those whose size is known.
        num_marked: Those whose size was given by `micro_batch(num_examples)` rather than read from the model's input.
        size: Σ n.
        size_sq: Σ n².
        inverse_size: Σ 1 / n.
    """

    num: float = 0.0
    num_sized: float = 0.0
    num_marked: float = 0.0
    size: float = 0.0
    size_sq: float = 0.0
    inverse_size: float = 0.0

    @property
    def are_equal(self) -> bool:
        """Whether all sizes are the same: then K Σ n² = (Σ n)²."""
        return self.num * self.size_sq <= self.size**2 * (1 + 1e-12)


@dataclass(frozen=True, slots=True)
class StepSizes:
    """How the examples of a step are spread over its small batches.

    Attributes:
        num_small_batches: K, small batches with at least one example.
        batch_size: N, examples of the step; None where neither given nor readable.
        source: Where N comes from; None with it.
        are_equal: Every small batch holds N / K examples, as far as is known.
        mean_inverse_size: Mean of 1 / n_k, in 1 / examples; None without a batch size.
        sum_of_sq_sizes: Σ n_k², in examples²; None where all are equal.
    """

    num_small_batches: int
    batch_size: float | None
    source: BatchSizeSource | None
    are_equal: bool = True
    mean_inverse_size: float | None = None
    sum_of_sq_sizes: float | None = None


@dataclass(frozen=True, slots=True)
class StepNorms:
    """Squared norms of one optimizer step, as a mean gradient over its examples.

    Attributes:
        sizes: The step's examples and small batches.
        weighted_sq_norms: W = Σ p_k |g_k|² over all parameters first, then per group; empty where there is no estimate.
            With weighting "equal", W = Σ |g_k|² / K.
        big_sq_norms: |ḡ|² in the same order, before clipping.
        contribution_sq_norms: Σ |p_k g_k|² in the same order, where sizes differ; else empty.
        loss: As logged; None where none was given.
        weighting: How the loop weighs its small batches.
        adds_up: False where the gradient is not the sum of the small batches: it was clipped, unscaled, averaged or
            cleared since, or came in parts that cannot be put together. Then there is no estimate.
        is_partial: Some parameters had a gradient in some of the small batches only.
        kind_terms: Of each further kind that the step gave terms of.
        in_metric: |s|² of one small batch in the metric of the optimizer's update, and its share p of the step, where
            what the update promises is measured; else None.
        kind_brackets: Between which values those noise scales lie that the step gave no terms of, where that is known.
        is_coupled: A BatchNorm in training mode made examples depend on each other.
        is_proxy: Only the normalisations were measured.
        size_slope: How |p_k g_k|² grows with n_k, where sizes differ and this process knows each; else None.
        contrasts: Of |g|² between places in the step, where sizes are equal and this process knows each; else None.
        distances: How far the gradient is from those of the steps before it; None where it was not looked at.
        has_equal_norms: All small batches have the same |g|², far beyond chance.
        reason: Why a backward could not be taken apart into small batches, as a clause.
        num_ranks: R, data-parallel ranks whose small batches are in the sums.
        rank_sq_norm: Like the first of `weighted_sq_norms`, with each rank's own gradient as one small batch; None
            where it was not looked at.
        is_compressed: Gradients lost digits on their way between the ranks.
        is_averaged: The gradient is the mean over ranks of what they put in, as far as it was looked at.
        are_sums_lost: The sums over ranks never came, or do not belong together.
    """

    sizes: StepSizes
    weighted_sq_norms: Sequence[float]
    big_sq_norms: Sequence[float]
    loss: float | None
    contribution_sq_norms: Sequence[float] = ()
    weighting: Weighting = "by_size"
    adds_up: bool = True
    is_partial: bool = False
    kind_terms: Mapping[str, Terms] = field(default_factory=dict)
    in_metric: tuple[float, float] | None = None
    kind_brackets: Mapping[str, Bracket] = field(default_factory=dict)
    is_coupled: bool = False
    is_proxy: bool = False
    has_equal_norms: bool = False
    size_slope: SizeSlope | None = None
    contrasts: Contrasts | None = None
    distances: StepDistances | None = None
    reason: str | None = None
    num_ranks: int = 1
    rank_sq_norm: float | None = None
    is_compressed: bool = False
    is_averaged: bool = True
    are_sums_lost: bool = False

    @property
    def lacks_parts(self) -> bool:
        """Whether a backward could not be taken apart, and neither a given size nor the sums make up for it."""
        return self.reason is not None and (not self.adds_up or self.sizes.batch_size is None)


def resolve_sizes(sums: SizeSums, batch_size: float | None) -> StepSizes:
    """Sizes of a step from what was marked, given and read.

    Marked sizes count as shares of `batch_size` where both are given, so they may be in tokens. Sizes read from the
    input count only if they add up to `batch_size`: otherwise the leading dimension is not the example's, and the
    batch is split equally.

    Args:
        sums: Over the small batches of the step.
        batch_size: Examples of the step as the caller gave them; None: read.
    """
    num = round(sums.num)
    are_known = num > 0 and sums.num_sized == sums.num
    are_marked = are_known and sums.num_marked == sums.num
    adds_up = batch_size is not None and math.isclose(sums.size, batch_size, rel_tol=1e-9)
    if are_known and (are_marked or batch_size is None or adds_up):
        total = batch_size or sums.size
        read: BatchSizeSource = "micro_batch" if are_marked else "inferred"
        mean_inverse_size = sums.inverse_size / sums.num * (sums.size / total)
        sum_of_sq_sizes = None if sums.are_equal else sums.size_sq * (total / sums.size) ** 2
        source = "argument" if batch_size else read
        return StepSizes(num, total, source, sums.are_equal, mean_inverse_size, sum_of_sq_sizes)
    if batch_size is None or num == 0:
        return StepSizes(num, batch_size, "argument" if batch_size else None)
    return StepSizes(num, batch_size, "argument", mean_inverse_size=num / batch_size)
