"""What a pass over lists of gradients gives back: sums in fp64, still on the device."""

# S sums: each tensor, then each group, then the total

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class GradientSums:
    """Sums of squares and products, fp64 [S]: of each tensor, each group, and all tensors together.

    Nothing has waited for the device: read it a step later.

    Attributes:
        sq_norm: Σ x².
        num_nonfinite: Elements that are NaN or infinite, of both lists. 0 beside a sum that is not finite: the sum
            itself is larger than fp64 holds.
        num_tensors: How many of the sums belong to single tensors.
        other_sq_norm: Σ y² of the other list; None where there is none.
        dot: Σ x y; None where it was not asked for.
    """

    sq_norm: Tensor
    num_nonfinite: Tensor
    num_tensors: int
    other_sq_norm: Tensor | None = None
    dot: Tensor | None = None


@dataclass(frozen=True, slots=True)
class SignSums:
    """Sums of absolute values of two lists of gradients a and b, fp64 [S], in the order of `GradientSums`.

    Attributes:
        distance: Σ |a - b|.
        upper: Σ (|a| + |b|) / 2.
        lower: Σ (sign(a) b + sign(b) a) / 2.
        num_nonfinite: Elements that are NaN or infinite, of both lists.
        num_tensors: How many of the sums belong to single tensors.
    """

    distance: Tensor
    upper: Tensor
    lower: Tensor
    num_nonfinite: Tensor
    num_tensors: int
