"""What one pass over one or two lists of tensors can sum up."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

Numbers = Sequence[float] | Tensor
"""One number for each tensor of a list; as a tensor, fp64 on the device of the list."""


class Operation(IntEnum):
    """The sums of a pass over x, or x and y; each ends with the count of elements that are not finite.

    SQ_NORMS: Σ x².
    DOTS: Σ x², Σ y², Σ x y.
    ACCUMULATE: y += x, then Σ x², Σ y².
    PRECONDITIONED: Σ (x / (√(y / c) + ε))², leaving out where y = 0; the numbers are ε and c.
    SIGNS: Σ |a - b|, Σ (|a| + |b|) / 2, Σ (sign(a) b + sign(b) a) / 2 of a = p x, b = q y; the numbers are p and q.
    """

    SQ_NORMS = 0
    DOTS = 1
    ACCUMULATE = 2
    PRECONDITIONED = 3
    SIGNS = 4

    @property
    def num_sums(self) -> int:
        """Sums of a pass, the count included."""
        return (2, 4, 3, 2, 4)[self]

    @property
    def has_other(self) -> bool:
        """Whether there are two lists."""
        return self is not Operation.SQ_NORMS


@dataclass(frozen=True, slots=True)
class Lists:
    """The tensors of one pass.

    Attributes:
        first: x of each tensor; None where it is missing: it counts as zeros.
        other: y of each tensor, as many elements as x; empty where the operation has one list.
        numbers: Two numbers for each tensor, for the operations that have some.
        inverse_scale: One number on the device that x is multiplied by, and the y of `DOTS` and `ACCUMULATE`, in the
            sums alone; None: 1.
    """

    first: Sequence[Tensor | None]
    other: Sequence[Tensor | None] = ()
    numbers: tuple[Numbers, Numbers] | None = None
    inverse_scale: Tensor | None = None

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
    """

    first: tuple[int, ...]
    other: tuple[int, ...] = ()
    other_dtypes: tuple[torch.dtype, ...] = ()
    numbers: tuple[Numbers, Numbers] | None = None
    inverse_scale: Tensor | None = None


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """In which sums of this type are accumulated outside of these kernels: fp64 stays, everything else is fp32."""
    return torch.float64 if dtype == torch.float64 else torch.float32
