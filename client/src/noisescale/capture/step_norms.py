"""What one optimizer step gives: squared norms and the sizes they belong to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

BatchSizeSource = Literal["argument", "micro_batch", "inferred"]


@dataclass(frozen=True, slots=True)
class StepSizes:
    """How the examples of a step are spread over its small batches.

    Attributes:
        num_small_batches: K, small batches with at least one example.
        batch_size: N, examples of the step; None where neither given nor readable.
        source: Where N comes from; None with it.
        shares: Σ n / n_k of each small batch; None while all are equal (then each is K).
        adds_up: False where the gradient is not the sum of the small batches: it was clipped, unscaled, averaged or
            cleared since, or came in parts that cannot be put together. Then there is no estimate.
    """

    num_small_batches: int
    batch_size: float | None
    source: BatchSizeSource | None
    shares: tuple[float, ...] | None = None
    adds_up: bool = True


@dataclass(frozen=True, slots=True)
class StepNorms:
    """Squared norms of one optimizer step, as a mean gradient over its examples.

    Attributes:
        sizes: The step's examples and small batches.
        weighted_sq_norms: W = Σ p_k |g_k|² over all parameters first, then per group; empty where there is no estimate.
        big_sq_norms: |ḡ|² in the same order, before clipping.
        loss: As logged; None where none was given.
    """

    sizes: StepSizes
    weighted_sq_norms: Sequence[float]
    big_sq_norms: Sequence[float]
    loss: float | None


@dataclass(frozen=True, slots=True)
class SmallBatchSize:
    """Examples of one small batch.

    Attributes:
        num_examples: None where the model's input did not tell.
        is_marked: Given by `micro_batch(num_examples)` rather than read from the input.
    """

    num_examples: float | None
    is_marked: bool


def resolve_sizes(small_batches: Sequence[SmallBatchSize], batch_size: float | None) -> StepSizes:
    """Sizes of a step from what was marked, given and read.

    Marked sizes count as shares of `batch_size` where both are given, so they may be in tokens. Sizes read from the
    input count only if they add up to `batch_size`: otherwise the leading dimension is not the example's, and the
    batch is split equally.

    Args:
        small_batches: One entry for each small batch of the step.
        batch_size: Examples of the step as the caller gave them; None: read.
    """
    counted = [batch for batch in small_batches if batch.num_examples != 0]
    sizes = [batch.num_examples for batch in counted if batch.num_examples is not None]
    total = sum(sizes)
    are_known = bool(counted) and len(sizes) == len(counted)
    are_marked = are_known and all(batch.is_marked for batch in counted)
    if are_known and (are_marked or batch_size is None or batch_size == total):
        shares = None if min(sizes) == max(sizes) else tuple(total / size for size in sizes)
        read: BatchSizeSource = "micro_batch" if are_marked else "inferred"
        return StepSizes(len(counted), batch_size or total, "argument" if batch_size else read, shares)
    return StepSizes(len(counted), batch_size, "argument" if batch_size else None)
