"""What one pass over one or two lists of tensors can sum up."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

# S sums: each tensor, then each group, then the total

Numbers = Sequence[float] | Tensor
"""One number for each tensor of a list; as a tensor, fp64 on the device of the list."""


class Operation(IntEnum):
    """The sums of a pass over x, or x and y; each ends with the count of elements that are not finite.

    SQ_NORMS: Σ x².
    DOTS: Σ x², Σ y², Σ x y.
    ACCUMULATE: y += x, then Σ x², Σ y².
    PRECONDITIONED: Σ (x / (√(y / c) + ε))², leaving out where y = 0; the numbers are ε and c.
    SIGNS: Σ |a - b|, Σ (|a| + |b|) / 2, Σ (sign(a) b + sign(b) a) / 2 of a = p x, b = q y; the numbers are p and q.
    METRIC: Σ x², Σ x² / d, Σ x z / d of three lists with d = s √y + ε, leaving out of the last two where y = 0; the
        numbers are ε and s.
    """

    SQ_NORMS = 0
    DOTS = 1
    ACCUMULATE = 2
    PRECONDITIONED = 3
    SIGNS = 4
    METRIC = 5

    @property
    def num_sums(self) -> int:
        """Sums of a pass, the count included."""
        return (2, 4, 3, 2, 4, 4)[self]

    @property
    def has_other(self) -> bool:
        """Whether there are two lists at least."""
        return self is not Operation.SQ_NORMS

    @property
    def has_third(self) -> bool:
        """Whether there are three lists."""
        return self is Operation.METRIC


@dataclass(frozen=True, slots=True)
class Lists:
    """The tensors of one pass.

    Attributes:
        first: x of each tensor; None where it is missing: it counts as zeros.
        other: y of each tensor, as many elements as x; empty where the operation has one list.
        numbers: Two numbers for each tensor, for the operations that have some.
        inverse_scale: One number on the device that x is multiplied by, and the y of `DOTS` and `ACCUMULATE`, in the
            sums alone; None: 1.
        third: z of each tensor, of the type of y; of three lists all tensors are contiguous. Empty where there are two.
    """

    first: Sequence[Tensor | None]
    other: Sequence[Tensor | None] = ()
    numbers: tuple[Numbers, Numbers] | None = None
    inverse_scale: Tensor | None = None
    third: Sequence[Tensor | None] = ()

    def numbers_of(self, index: int) -> tuple[Any, Any]:
        """Both numbers of one tensor: floats, or tensors with one element."""
        return (1.0, 1.0) if self.numbers is None else (self.numbers[0][index], self.numbers[1][index])


@dataclass(frozen=True, slots=True)
class PlainLists:
    """The lists of a pass whose tensors are all there, contiguous, and as announced: only where they begin counts.

    Attributes:
        first: Address of x of each tensor.
        other: Address of y of each tensor; empty where the operation has one list.
        other_dtypes: Type of each y, one for all x of a type; empty likewise.
        numbers: See `Lists`.
        inverse_scale: See `Lists`.
        third: Address of z of each tensor; see `Lists`.
    """

    first: tuple[int, ...]
    other: tuple[int, ...] = ()
    other_dtypes: tuple[torch.dtype, ...] = ()
    numbers: tuple[Numbers, Numbers] | None = None
    inverse_scale: Tensor | None = None
    third: tuple[int, ...] = ()


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """In which sums of this type are accumulated outside of these kernels: fp64 stays, everything else is fp32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


# What a pass over lists of gradients gives back: sums in fp64, still on the device.


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
class MetricSums:
    """Sums of gradients g in the metric of an optimizer's step, fp64 [S], in the order of `GradientSums`.

    Attributes:
        sq_norm: Σ g².
        own: Σ g² / d.
        product: Σ g z / d.
        num_nonfinite: Elements of g and v that are NaN or infinite.
        num_tensors: How many of the sums belong to single tensors.
    """

    sq_norm: Tensor
    own: Tensor
    product: Tensor
    num_nonfinite: Tensor
    num_tensors: int


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
