"""Lists of random gradients of one set, and what their sums are in fp64."""

# P tensors

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.kernels.tensor_sets import TensorSet
from noisescale.kernels.operations import Operation

PIECE = 2**24
"""Elements converted to fp64 at a time: 128 MiB."""

EPS = 1e-8
BIAS_CORRECTION = 0.1

LEAST_SECOND_MOMENT = 0.1
"""Coordinates whose second moment is 0 are left out by ours, and infinite elsewhere: there are none here."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What one operation reads on one set.

    Attributes:
        operation: What is summed up.
        gradients: One tensor a shape.
        others: The second list: gradients, fp32 sums or second moments; None where there is none.
    """

    operation: Operation
    gradients: list[Tensor]
    others: list[Tensor] | None

    @property
    def num_bytes(self) -> int:
        """That the operation has to move: each list is read once, sums in place are written, too."""
        passes = 2 if self.operation is Operation.ACCUMULATE else 1
        return sum(tensor.nbytes for tensor in self.gradients) + passes * sum(t.nbytes for t in self.others or [])


def bytes_needed(tensor_set: TensorSet, dtype: torch.dtype) -> int:
    """Memory for both lists and for what making or summing them takes beside."""
    return tensor_set.num_elements * (dtype.itemsize + 2 * torch.float32.itemsize)


def workload(operation: Operation, gradients: list[Tensor]) -> Workload:
    """The operation on these gradients, with a second list where it reads one."""
    if operation is Operation.ACCUMULATE:
        return Workload(operation, gradients, [torch.zeros_like(g, dtype=torch.float32) for g in gradients])
    if operation is Operation.PRECONDITIONED:
        return Workload(
            operation, gradients, [torch.rand_like(g, dtype=torch.float32).add_(LEAST_SECOND_MOMENT) for g in gradients]
        )
    return Workload(operation, gradients, random_like(gradients) if operation is Operation.DOTS else None)


def random_gradients(tensor_set: TensorSet, dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    """Normal numbers, each tensor on a scale of its own, as layers have."""
    scales = (1e-3, 1e-2, 3e-4)
    return [
        torch.randn(shape, dtype=dtype, device=device).mul_(scales[index % len(scales)])
        for index, shape in enumerate(tensor_set.shapes)
    ]


def random_like(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Other normal numbers in the same shapes."""
    return [torch.randn_like(tensor) for tensor in tensors]


@dataclass(frozen=True, slots=True)
class Truth:
    """A kind of sums in fp64, and what an error is a share of.

    Attributes:
        sums: [P].
        scale: [P]; the sum itself, and ‖x‖ ‖y‖ for products, which may cancel.
    """

    sums: Tensor
    scale: Tensor


def truths(work: Workload) -> list[Truth]:
    """Every kind of sums of the operation; those of accumulating are true after two calls from zero."""
    squares = [_sum(_squares, tensor, tensor) for tensor in work.gradients]
    sq_norms = torch.stack(squares)
    others = work.others
    if work.operation is Operation.ACCUMULATE:
        return [Truth(sq_norms, sq_norms), Truth(4 * sq_norms, 4 * sq_norms)]
    if work.operation is Operation.PRECONDITIONED and others is not None:
        pairs = zip(work.gradients, others, strict=True)
        sums = torch.stack([_sum(_preconditioned, g, v) for g, v in pairs])
        return [Truth(sums, sums)]
    if work.operation is Operation.DOTS and others is not None:
        other_sq_norms = torch.stack([_sum(_squares, tensor, tensor) for tensor in others])
        dots = torch.stack([_sum(torch.mul, x, y) for x, y in zip(work.gradients, others, strict=True)])
        scales = (sq_norms * other_sq_norms).sqrt()
        return [Truth(sq_norms, sq_norms), Truth(other_sq_norms, other_sq_norms), Truth(dots, scales)]
    return [Truth(sq_norms, sq_norms)]


def largest_error(found: Sequence[Tensor], expected: Sequence[Truth]) -> float:
    """The largest relative error of any tensor's sum; of the total where a contender has no other.

    Args:
        found: Kinds of sums, each [P], or [1] for the total; kinds at the end may lack.
        expected: The same kinds in fp64.
    """
    errors = []
    for sums, truth in zip(found, expected, strict=False):
        in_total = sums.numel() == 1 and truth.sums.numel() > 1
        exact, scale = (truth.sums.sum(), truth.scale.sum()) if in_total else (truth.sums, truth.scale)
        errors.append(float(((sums.double().reshape(exact.shape) - exact).abs() / scale).max()))
    return max(errors)


def _squares(x: Tensor, _: Tensor) -> Tensor:
    return x.square()


def _preconditioned(g: Tensor, v: Tensor) -> Tensor:
    return (g / ((v / BIAS_CORRECTION).sqrt() + EPS)).square()


def _sum(term: object, first: Tensor, other: Tensor) -> Tensor:
    assert callable(term)
    pairs = zip(first.flatten().split(PIECE), other.flatten().split(PIECE), strict=True)
    return torch.stack([term(x.double(), y.double()).sum() for x, y in pairs]).sum()
