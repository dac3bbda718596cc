"""Tensors as runs of memory that a kernel can read from their first address to their last."""

from collections.abc import Sequence
from operator import attrgetter

import torch
from torch import Tensor

Tensors = Sequence[Tensor | None]

# Called by `map` for each tensor of a list: a loop in Python would cost a microsecond a tensor.
_numel, _address, _is_contiguous = Tensor.numel, Tensor.data_ptr, Tensor.is_contiguous
_dtype, _shape, _device = attrgetter("dtype"), attrgetter("shape"), attrgetter("device")


def sizes_and_types(tensors: Sequence[Tensor]) -> tuple[tuple[int, ...], tuple[torch.dtype, ...]]:
    """Elements and type of each tensor."""
    return tuple(map(_numel, tensors)), tuple(map(_dtype, tensors))


def are_alike(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Whether two lists have the same shapes."""
    return tuple(map(_shape, tensors)) == tuple(map(_shape, others))


def are_together(tensors: Sequence[Tensor]) -> bool:
    """Whether all tensors are on one device."""
    return len(set(map(_device, tensors))) <= 1


def contiguous_addresses(tensors: Tensors) -> tuple[int, ...] | None:
    """The address of each tensor; None unless all are there, dense and contiguous.

    Args:
        tensors: A list that may hold anything that a list of gradients may hold.
    """
    try:
        return tuple(map(_address, tensors)) if all(map(_is_contiguous, tensors)) else None  # type: ignore[arg-type]
    except (TypeError, RuntimeError):  # one is missing, or sparse
        return None


class MemoryRuns:
    """The tensors of a call, each in one run of memory; two lists in the same order of elements.

    Sums do not care about the order, so a transposed tensor is read as it lies. One that has gaps in memory, or another
    order than its counterpart, is copied.

    Attributes:
        num_copies: Tensors copied so far.
    """

    def __init__(self) -> None:
        self.num_copies = 0

    def of(self, first: Tensors, other: Tensors) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """Both lists; those that needed a copy must be held until the kernel is launched.

        Args:
            first: One list.
            other: The other, in the same shapes; empty if there is none.
        """
        xs, ys = list(first), list(other)
        if all(tensor is None or tensor.is_contiguous() for tensor in (*xs, *ys)):
            return xs, ys
        for index, x in enumerate(xs):
            y = ys[index] if ys else None
            if (x is None or x.is_contiguous()) and (y is None or y.is_contiguous()):
                continue
            if x is not None and y is not None and x.stride() != y.stride():
                xs[index], ys[index] = self._contiguous(x), self._contiguous(y)
            else:
                xs[index] = self._run(x)
                if ys:
                    ys[index] = self._run(y)
        return xs, ys

    def _run(self, tensor: Tensor | None) -> Tensor | None:
        return tensor if tensor is None or is_one_run(tensor) else self._contiguous(tensor)

    def _contiguous(self, tensor: Tensor) -> Tensor:
        if tensor.is_contiguous():
            return tensor
        self.num_copies += 1
        return tensor.contiguous()

    def as_type(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """The tensor in this type."""
        if tensor.dtype == dtype:
            return tensor
        self.num_copies += 1
        return tensor.to(dtype)


def is_one_run(tensor: Tensor) -> bool:
    """Whether the elements fill one run of memory, each once, in whatever order."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
