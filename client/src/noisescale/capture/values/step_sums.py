"""What a step's small batches add up to, from the numbers that have arrived, of one process or over all ranks.

It is worked out on the host: there a sum over small batches costs less than a call to a device.
"""

# K entries, C columns (all parameters, then each group)

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from noisescale.capture.sums.small_batches import SmallBatchSize, sum_sizes, weights_of
from noisescale.capture.sums.step_norms import SizeSums, StepSizes, resolve_sizes
from noisescale.capture.values.sent_step import SentStep
from noisescale_core.estimators.order_of_passes import Contrasts, contrasts
from noisescale_core.estimators.size_weighting import SizeSlope, size_slope

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_part import StepParts

EQUAL_NORMS = 1e-6
"""Share by which squared norms of the same gradient may differ, computed twice on a device that adds in any order.
Different examples differ by about 1e-3 even where noise is a millionth of the gradient."""


class ArrivedNumbers:
    """The numbers of a step, to be taken from the front."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values
        self._position = 0

    def take(self, length: int) -> Sequence[float]:
        """The next so many of them."""
        taken = self._values[self._position : self._position + length]
        self._position += length
        return taken


@dataclass(frozen=True, slots=True)
class StepSums:
    """What a step's small batches add up to, as contributions to its gradient.

    Attributes:
        sizes: Of the small batches.
        adds_up: As in `GradientState`.
        is_partial: As in `GradientState`.
        weighted: W of each column.
        contributions: Σ |p_k g_k|² of each column, where sizes differ.
        big: |ḡ|² of each column.
        rank: W of all parameters with each rank as one small batch; None of one process.
        is_big_early: |ḡ|² was measured at the end of a backward, so before the gradients were unscaled.
        averages_over: What gradients were divided by when they were averaged over ranks.
        is_averaged: As in `StepNorms`.
        are_lost: The sums over ranks never came.
        has_equal_norms: As in `StepNorms`.
        size_slope: As in `StepNorms`.
        contrasts: As in `StepNorms`.
    """

    sizes: StepSizes
    adds_up: bool
    is_partial: bool
    weighted: Sequence[float] = ()
    contributions: Sequence[float] = ()
    big: Sequence[float] = ()
    rank: float | None = None
    is_big_early: bool = False
    averages_over: float = 1.0
    is_averaged: bool = True
    are_lost: bool = False
    has_equal_norms: bool = False
    size_slope: SizeSlope | None = None
    contrasts: Contrasts | None = None


def sums_of_process(sent: SentStep[Any], reader: ArrivedNumbers) -> StepSums:
    """Add up the entries of this process.

    Args:
        sent: What lies where.
        reader: At its first numbers: norms, and sizes that the device alone knew.
    """
    rows = reader.take(max(0, sent.num_rows - 1) * sent.num_columns)
    big = reader.take(sent.num_columns)
    entries = [
        replace(size, num_examples=reader.take(1)[0]) if isinstance(size.num_examples, Tensor) else size
        for size in sent.sizes
    ]
    sums = sum_sizes(entries)
    sizes = resolve_sizes(sums, sent.batch_size)
    weights = weights_of(entries, sums, is_equal=sizes.are_equal or sent.state.weighting == "equal")
    weighted = weigh(rows, sent.num_columns, weights)
    contributions: Sequence[float] = ()
    slope = None
    of_each = rows[:: sent.num_columns or 1]
    if not sizes.are_equal:
        slope = _slope(of_each, entries)
        contributions = weigh(rows, sent.num_columns, [float(weight > 0) for weight in weights])
    return StepSums(
        sizes,
        sent.state.adds_up,
        sent.state.is_partial,
        weighted,
        contributions,
        big,
        has_equal_norms=sizes.are_equal and are_equal_norms(of_each, entries),
        size_slope=slope,
        contrasts=contrasts(of_each) if sizes.are_equal and all(entry.num_small == 1 for entry in entries) else None,
    )


def sums_over_ranks(parts: "StepParts", sent: SentStep[Any], reader: ArrivedNumbers) -> StepSums:
    """Add up the parts of all ranks.

    Args:
        parts: All there.
        sent: What lies where.
        reader: At its first numbers: |ḡ|², where this process can see it.
    """
    step = parts.read()
    big = reader.take(sent.num_columns)
    if step is None:
        are_lost = bool(parts.parts)  # else nothing was averaged in this step
        sums = SizeSums(num=parts.num_ranks if are_lost else len(sent.sizes))
        return StepSums(resolve_sizes(sums, sent.batch_size), adds_up=False, is_partial=False, are_lost=are_lost)
    sums = step.sizes
    sizes = resolve_sizes(sums, sent.batch_size)
    is_equal = sizes.are_equal or sent.state.weighting == "equal"
    rank = None
    if step.rank_sq_norm is not None and step.sized_rank_sq_norm is not None:
        rank = parts.num_ranks * step.rank_sq_norm if is_equal else sums.size * step.sized_rank_sq_norm
    of_each, factor = (step.equal_sq_norms, sums.num) if is_equal else (step.sized_sq_norms, sums.size)
    return StepSums(
        sizes,
        adds_up=sent.state.adds_up and step.adds_up and step.is_averaged,
        is_partial=step.is_partial,
        weighted=[factor * value for value in of_each],
        contributions=() if sizes.are_equal else step.equal_sq_norms,
        big=step.big_sq_norms or big,
        rank=rank,
        is_big_early=step.big_sq_norms is not None,
        averages_over=parts.averages_over,
        is_averaged=step.is_averaged,
        size_slope=None if sizes.are_equal else step.size_slope,
    )


def weigh(values: Sequence[float], num_columns: int, weights: Sequence[float]) -> list[float]:
    """Σ weight · value over the rows of each column; a row of weight 0 counts for nothing, whatever is in it.

    Args:
        values: Row by row.
        num_columns: In each row.
        weights: Of the rows.
    """
    if not all(weights):
        kept = [row for row, weight in enumerate(weights) if weight]
        values = [value for row in kept for value in values[row * num_columns : (row + 1) * num_columns]]
        weights = [weights[row] for row in kept]
    return [sum(map(mul, weights, values[column::num_columns])) for column in range(num_columns)]


def _slope(sq_norms: Sequence[float], entries: Sequence[SmallBatchSize]) -> SizeSlope | None:
    if any(entry.num_small > 1 for entry in entries):
        return None
    return size_slope(sq_norms, [cast(float, entry.num_examples) for entry in entries])


def are_equal_norms(sq_norms: Sequence[float], entries: Sequence[SmallBatchSize]) -> bool:
    """Whether single small batches have the same squared norm, as only the same gradient does.

    16-bit gradients are added up with so much rounding that their sum does not show it.
    """
    if len(sq_norms) < 2 or entries[0].num_small > 1:
        return False
    largest = max(sq_norms)
    return largest - min(sq_norms) <= EQUAL_NORMS * largest
