"""What one rank adds to a step's sums, as a vector of fixed length, and what the sums over all ranks mean.

Everything in it adds: over the small batches of a rank, over ranks, and over the synchronised passes of a step.
"""

# K entries, C columns (all parameters, then each group), V values

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from noisescale.capture.data_parallel.averaging_check import NUM_VALUES, is_average
from noisescale.capture.sums.small_batches import (
    NUM_SIZE_SUMS,
    NUM_SLOPE_SUMS,
    SmallBatchSize,
    slope_sums,
    sum_late_sizes,
    weighted_sums,
)
from noisescale.capture.sums.step_norms import SizeSums
from noisescale_core.estimators.size_weighting import SizeSlope, slope_of_sums

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSum

NUM_OWN = 3
"""|a|² / n of the rank's own gradient, |a|², and 1 where it was looked at."""

NUM_FAULTS = 2
"""Ranks whose gradient is not the sum of their small batches, and ranks that saw some parameters now and then only."""


def rank_part(
    sq_norm_KC: Tensor,
    sizes: Sequence[SmallBatchSize],
    *,
    adds_up: bool,
    is_partial: bool,
    own_sq_norm: Tensor | None,
    averaging: Tensor | None,
    big_sq_norm_C: Tensor | None,
) -> Tensor:
    """This rank's part, fp64 [V], on the device, without waiting.

    Args:
        sq_norm_KC: Σ |s|² of each small batch since the last part, with the gradients as autograd made them.
        sizes: Of each.
        adds_up: The rank's gradient is the sum of its small batches.
        is_partial: Some parameters had a gradient in some small batches only.
        own_sq_norm: |a|² of the rank's own accumulated gradient, fp64 without dimensions.
        averaging: From `AveragingCheck`.
        big_sq_norm_C: The rank's share of |ḡ|², where ranks hold shards.
    """
    zeros_C = sq_norm_KC.new_zeros(sq_norm_KC.shape[1])
    equal_C, sized_C = weighted_sums(sq_norm_KC, sizes) if sizes else (zeros_C, zeros_C)
    size_sums = sum_late_sizes(sizes, sq_norm_KC) if sizes else sq_norm_KC.new_zeros(NUM_SIZE_SUMS)
    if own_sq_norm is None:
        own = sq_norm_KC.new_zeros(NUM_OWN)
    else:
        own = torch.stack([own_sq_norm / size_sums[3], own_sq_norm, torch.ones_like(own_sq_norm)])
    faults = [sq_norm_KC.new_full((1,), float(not adds_up)), sq_norm_KC.new_full((1,), float(is_partial))]
    checked = sq_norm_KC.new_full((NUM_VALUES,), math.nan) if averaging is None else averaging
    slope = slope_sums(sq_norm_KC[:, 0], sizes) if sizes else sq_norm_KC.new_zeros(NUM_SLOPE_SUMS)
    parts = [equal_C, sized_C, size_sums, own, *faults, slope, checked]
    return torch.cat(parts if big_sq_norm_C is None else [*parts, big_sq_norm_C])


def lost_part(num_columns: int, *, has_shards: bool, like: Tensor) -> Tensor:
    """What a rank sends that could not make its part: of the same length, and not a number."""
    length = (2 + has_shards) * num_columns + NUM_SIZE_SUMS + NUM_OWN + NUM_FAULTS + NUM_SLOPE_SUMS + NUM_VALUES
    return like.new_full((length,), math.nan, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class StepOverRanks:
    """The sums of one step over all ranks, as contributions to the averaged gradient.

    Attributes:
        equal_sq_norms: Σ |s_k|² over all small batches of all ranks, per column.
        sized_sq_norms: Σ |s_k|² / n_k.
        sizes: Over the same.
        rank_sq_norm: Σ |c_r|² over ranks, c_r what rank r adds to the gradient; None where it was not looked at.
        sized_rank_sq_norm: Σ |c_r|² / n_r, n_r the rank's examples.
        big_sq_norms: |ḡ|² per column where ranks hold shards; None: each rank can see it.
        adds_up: The gradient of each rank was the sum of its small batches.
        is_averaged: The gradient is the mean over ranks, as far as it was looked at.
        is_partial: Some rank saw some parameters in some small batches only.
        size_slope: How |s_k|² grows with n_k over all small batches; None where they do not tell.
    """

    equal_sq_norms: Sequence[float]
    sized_sq_norms: Sequence[float]
    sizes: SizeSums
    rank_sq_norm: float | None
    sized_rank_sq_norm: float | None
    big_sq_norms: Sequence[float] | None
    adds_up: bool
    is_averaged: bool
    is_partial: bool
    size_slope: SizeSlope | None = None


@dataclass(frozen=True, slots=True)
class StepParts:
    """The sums over ranks that hold a step's small batches.

    Attributes:
        parts: One for each synchronised backward of the step.
        num_columns: C.
        num_ranks: R.
        averages_over: What a gradient is divided by when ranks are averaged.
        has_shards: |ḡ|² is in the parts, too.
        is_compressed: Gradients lost digits on their way between the ranks.
    """

    parts: "Sequence[RankSum]"
    num_columns: int
    num_ranks: int
    averages_over: float
    has_shards: bool
    is_compressed: bool

    @property
    def are_there(self) -> bool:
        """Whether nothing is on its way any more."""
        return all(part.is_there for part in self.parts)

    def read(self) -> StepOverRanks | None:
        """The step, once all parts are there; None where it has none, or one was lost."""
        summed = [values for values in (part.values() for part in self.parts) if values is not None]
        if not summed or len(summed) < len(self.parts):
            return None
        factor = self.averages_over**2
        equal, sized = [0.0] * self.num_columns, [0.0] * self.num_columns
        sizes, own, faults = [0.0] * NUM_SIZE_SUMS, [0.0] * NUM_OWN, [0.0] * NUM_FAULTS
        slope = [0.0] * NUM_SLOPE_SUMS
        is_averaged, big_sq_norms = True, []
        for values in summed:
            reader = iter(values)
            for total in (equal, sized, sizes, own, faults, slope):
                total[:] = [old + next(reader) for old in total]
            is_averaged &= is_average([next(reader) for _ in range(NUM_VALUES)])
            big_sq_norms = list(reader)  # of the gradient so far: the last counts
        if math.isnan(faults[0]):
            return None  # a rank could not make its part
        has_own = len(summed) == 1 and own[2] == self.num_ranks
        return StepOverRanks(
            [value / factor for value in equal],
            [value / factor for value in sized],
            SizeSums(*sizes),
            own[1] / factor if has_own else None,
            own[0] / factor if has_own else None,
            big_sq_norms if self.has_shards else None,
            adds_up=faults[0] == 0,
            is_averaged=is_averaged,
            is_partial=faults[1] != 0,
            size_slope=slope_of_sums(*slope),
        )
