"""The small batches of one optimizer step so far: what they add to the step's gradient, and their sizes."""

# K entries, C columns (all parameters, then each group)

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from noisescale.capture.sums.step_norms import SizeSums

NUM_SIZE_SUMS = 6

NUM_SLOPE_SUMS = 5


@dataclass(frozen=True, slots=True)
class SmallBatchSize:
    """Examples behind one entry.

    Attributes:
        num_examples: Also a number on the device, which is never read there; None where the input did not tell.
        is_marked: Given by `micro_batch(num_examples)` rather than read from the input.
        num_small: Small batches of equal size that the entry stands for: per-example norms come summed.
    """

    num_examples: float | Tensor | None
    is_marked: bool = False
    num_small: int = 1


def total_size(sizes: Sequence[float | None]) -> float | None:
    """Examples of several forwards; None of none, and where one of them is not known."""
    total = 0.0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total if sizes else None


def sum_sizes(sizes: Sequence[SmallBatchSize]) -> SizeSums:
    """The sums that say how examples are spread, where the host knows all sizes."""
    num = num_sized = num_marked = total = total_sq = inverse = 0.0
    for _, same in groupby(sizes, key=id):  # most often one object for all small batches of a step
        repeats = list(same)
        examples, m, r = repeats[0].num_examples, repeats[0].num_small, len(repeats)
        assert not isinstance(examples, Tensor)
        if examples == 0:
            continue
        num += r * m
        num_marked += r * m * repeats[0].is_marked
        if examples is not None:
            num_sized += r * m
            total += r * examples
            total_sq += r * examples * examples / m
            inverse += r * m * m / examples
    return SizeSums(num, num_sized, num_marked, total, total_sq, inverse)


def weights_of(sizes: Sequence[SmallBatchSize], sums: SizeSums, *, is_equal: bool) -> list[float]:
    """By what the Σ |s|² of each entry counts in W = Σ p_k |g_k|²; 0 of one without examples.

    Args:
        sizes: All known to the host.
        sums: Of them.
        is_equal: As if all were of the same size.
    """
    if is_equal:
        return [0.0 if size.num_examples == 0 else sums.num for size in sizes]
    weights = []
    for size in sizes:
        assert not isinstance(size.num_examples, Tensor)
        weights.append(sums.size * size.num_small / size.num_examples if size.num_examples else 0.0)
    return weights


def sum_late_sizes(sizes: Sequence[SmallBatchSize], like: Tensor) -> Tensor:
    """The same sums, [6] fp64 on the device, in the order of `SizeSums`.

    Args:
        sizes: At least one.
        like: A tensor on that device.
    """
    size_K, num_K = _on_device(sizes, like)
    has_examples_K = (size_K != 0).double()
    is_sized_K = has_examples_K * _constants([s.num_examples is not None for s in sizes], like)
    is_marked_K = has_examples_K * _constants([s.is_marked for s in sizes], like)
    safe_K = torch.where(size_K == 0, 1.0, size_K)
    return torch.stack(
        [
            (has_examples_K * num_K).sum(),
            (is_sized_K * num_K).sum(),
            (is_marked_K * num_K).sum(),
            (is_sized_K * size_K).sum(),
            (is_sized_K * size_K * size_K / num_K).sum(),
            (is_sized_K * num_K * num_K / safe_K).sum(),
        ]
    )


def weighted_sums(sq_norm_KC: Tensor, sizes: Sequence[SmallBatchSize]) -> tuple[Tensor, Tensor]:
    """Σ |s_k|² and Σ |s_k|² / n_k over the small batches, each [C].

    Args:
        sq_norm_KC: Σ |s|² of each entry.
        sizes: Of each entry; one without a size counts in the first sum only, one without examples in none.
    """
    size_K, num_K = _on_device(sizes, sq_norm_KC)
    has_examples_K = (size_K != 0).double()
    inverse_K = has_examples_K * num_K / torch.where(size_K == 0, 1.0, size_K)
    return has_examples_K @ sq_norm_KC, inverse_K @ sq_norm_KC


def slope_sums(sq_norm_K: Tensor, sizes: Sequence[SmallBatchSize]) -> Tensor:
    """Of x = log n and y = log |s|²: number, Σ x, Σ y, Σ x², Σ x y, [5] on the device; they add over ranks.

    Not finite where an entry stands for several small batches, has no known size, or no gradient.

    Args:
        sq_norm_K: |s|² of each entry.
        sizes: Of each.
    """
    size_K, _ = _on_device(sizes, sq_norm_K)
    has_examples_K = size_K != 0
    x_K = torch.where(has_examples_K, size_K.log(), 0.0)
    y_K = torch.where(has_examples_K, sq_norm_K.log(), 0.0)
    one_K = has_examples_K.double()
    if any(size.num_small > 1 or size.num_examples is None for size in sizes):
        one_K = one_K * float("nan")
    return torch.stack([one_K, x_K, y_K, x_K * x_K, x_K * y_K]).sum(1)


def _on_device(sizes: Sequence[SmallBatchSize], like: Tensor) -> tuple[Tensor, Tensor]:
    """Sizes (1 where unknown) and numbers of small batches, each [K] fp64."""
    scalars = [
        size.num_examples.detach().double().reshape(())
        if isinstance(size.num_examples, Tensor)
        else _constant(1.0 if size.num_examples is None else size.num_examples, like)
        for size in sizes
    ]
    return torch.stack(scalars), _constants([size.num_small for size in sizes], like)


def _constants(values: Sequence[float], like: Tensor) -> Tensor:
    return torch.stack([_constant(value, like) for value in values])


def _constant(value: float, like: Tensor) -> Tensor:
    # Filled on the device: a number from the host would have to travel there, and wait.
    return like.new_full((), float(value), dtype=torch.float64)
