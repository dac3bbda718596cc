"""Whether a reduction gives the right sums on this device: a few chunks of known numbers."""

from collections.abc import Callable

import torch
from torch import Tensor

from noisescale.kernels.layout import CHUNK, Layout, layout_of
from noisescale.kernels.multi_tensor.reduction import Reduction
from noisescale.kernels.operations import Lists, Operation

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
    return Lists(present, [other.clone() for other in others], ([0.5] * len(SIZES), [0.25] * len(SIZES)))


def _numbers(size: int, device: torch.device, period: int) -> Tensor:
    """Without a sum near 0: relative errors of cancelled sums say nothing."""
    return (torch.arange(size, device=device) % period + 1).float() / 64
