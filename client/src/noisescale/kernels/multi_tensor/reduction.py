"""What sums up lists of tensors, whichever way."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from noisescale.kernels.layout import CHUNK, Layout, layout_of
from noisescale.kernels.operations import Lists, Operation, PlainLists


class Reduction(Protocol):
    """Sums over lists of tensors of one layout, on one device."""

    @property
    def num_copies(self) -> int:
        """Tensors copied so far, because the kernel cannot read them where they are."""
        ...

    def sums(self, operation: Operation, lists: Lists) -> Tensor:
        """Sums and counts [N, S], fp64, without waiting for the device.

        Args:
            operation: What to sum up; N sums.
            lists: The tensors, each as large as the layout says, or smaller.
        """
        ...


class PlainReduction(Reduction, Protocol):
    """One that reads tensors where they lie, if all are as announced."""

    def sums_at(self, operation: Operation, lists: PlainLists) -> Tensor:
        """`sums` of tensors that need not be looked at one by one.

        Args:
            operation: What to sum up.
            lists: Where they begin.
        """
        ...


# Whether a reduction gives the right sums on this device: a few chunks of known numbers.

MakeReduction = Callable[[Layout, torch.device], Reduction]

SIZES = (1, CHUNK + 777, 5000, 300)

TOLERANCE = 1e-6


def check(operation: Operation, device: torch.device, tested: MakeReduction, trusted: MakeReduction) -> None:
    """Compare both on lists with odd sizes, two types, a missing tensor, and elements that are not finite.

    Args:
        operation: What to sum up.
        device: Where.
        tested: Makes the reduction in question.
        trusted: Makes the one that it must agree with.

    Raises:
        ArithmeticError: It differs by more than a millionth.
    """
    dtypes = (torch.float32, torch.bfloat16, torch.float32, torch.bfloat16)
    layout = layout_of(SIZES, dtypes, (0, 1, 1, 0), 2)
    firsts = [_numbers(size, device, 97).to(dtype) for size, dtype in zip(SIZES, dtypes, strict=True)]
    others = [_numbers(size, device, 89).abs() for size in SIZES]
    firsts[3][7], firsts[3][8] = torch.nan, torch.inf
    found = tested(layout, device).sums(operation, _lists(operation, firsts, others))
    expected = trusted(layout, device).sums(operation, _lists(operation, firsts, others))
    if not torch.allclose(found, expected, rtol=TOLERANCE, atol=0, equal_nan=True):
        raise ArithmeticError(f"{operation.name.lower()} gives {found.tolist()}, expected {expected.tolist()}")


def _lists(operation: Operation, firsts: list[Tensor], others: list[Tensor]) -> Lists:
    present: list[Tensor | None] = [None, *firsts[1:]]
    if operation is Operation.SQ_NORMS:
        return Lists(present)
    numbers = [0.5] * len(SIZES), [0.25] * len(SIZES)
    third = [other + 1 for other in others] if operation.has_third else []
    return Lists(present, [other.clone() for other in others], numbers, third=third)


def _numbers(size: int, device: torch.device, period: int) -> Tensor:
    """Without a sum near 0: relative errors of cancelled sums say nothing."""
    return (torch.arange(size, device=device) % period + 1).float() / 64
