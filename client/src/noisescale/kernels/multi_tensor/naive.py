"""The sums of `Operation` in plain PyTorch: what the kernel is tested against, and what runs where it cannot.

Everything is summed in fp64, in pieces, so that no second list of gradients is in memory.
"""

# P tensors, G groups, S sums: each tensor, then each group, then the total; N kinds of sums of an operation

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from noisescale.kernels.layout import Layout
from noisescale.kernels.operations import Lists, Operation
from noisescale.kernels.row_norms import condense, norms_of_condensed

PIECE_ON_HOST = 1 << 16
"""Elements converted at a time; they stay in the cache."""

PIECE_ON_DEVICE = 1 << 23
"""Elements converted at a time: few launches, 64 MiB."""

Pair = tuple[Tensor, Tensor]
Terms = Callable[[Tensor, Tensor, Any, Any], list[Tensor]]


class NaiveReduction:
    """Sums over lists of tensors of one layout."""

    num_copies = 0

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self._device = device
        self._layout = layout
        self._members: list[list[int]] = [[] for _ in range(layout.num_groups)]
        for index, group in enumerate(layout.group_of_tensor):
            if group >= 0:
                self._members[group].append(index)

    def sums(self, operation: Operation, lists: Lists) -> Tensor:
        """Sums and counts [N, S], fp64."""
        if operation is Operation.ACCUMULATE:
            for gradient, main in zip(lists.first, lists.other, strict=True):
                if gradient is not None and main is not None:
                    main.add_(gradient)
        sums_NP = self._sq_norms(lists) if operation is Operation.SQ_NORMS else self._pair_sums(operation, lists)
        columns = sums_NP.unbind(dim=1)  # views: a list of indices would have to travel to the device, and wait
        nothing = torch.zeros_like(columns[0])
        groups = [
            torch.stack([columns[index] for index in members]).sum(dim=0) if members else nothing
            for members in self._members
        ]
        return torch.cat([sums_NP, torch.stack([*groups, sums_NP.sum(dim=1)], dim=1)], dim=1)

    def _sq_norms(self, lists: Lists) -> Tensor:
        nothing = torch.zeros((), device=self._device)
        values = [nothing if tensor is None else tensor for tensor in lists.first]
        norm_P = torch.stack(norms_of_condensed([condense(tensor) for tensor in values]))
        if lists.inverse_scale is not None:
            norm_P = norm_P * lists.inverse_scale
        return torch.stack([norm_P.square(), self._num_nonfinite(norm_P, values)])

    def _num_nonfinite(self, norm_P: Tensor, values: list[Tensor]) -> Tensor:
        if norm_P.is_cpu:
            # the host can look at its own sums: clean data are not read again
            suspects = norm_P.isfinite().logical_not_().tolist()
            return torch.tensor(
                [float(num_nonfinite(v)) if s else 0.0 for v, s in zip(values, suspects, strict=True)]
            ).double()
        return torch.stack([num_nonfinite(tensor) for tensor in values]).double()

    def _pair_sums(self, operation: Operation, lists: Lists) -> Tensor:
        sums_P = []
        for index, (first, other) in enumerate(zip(lists.first, lists.other, strict=True)):
            total_N = torch.zeros(operation.num_sums, dtype=torch.float64, device=self._device)
            numbers = lists.numbers_of(index)
            for x, y in pieces(first, other):
                counts = num_nonfinite(x) + num_nonfinite(y)
                x, y = x.double(), y.double()
                if lists.inverse_scale is not None:
                    x = x * lists.inverse_scale
                    y = y if operation is Operation.PRECONDITIONED else y * lists.inverse_scale
                terms = TERMS[operation](x, y, *numbers)
                total_N += torch.stack([*(term.sum() for term in terms), counts.double()])
            sums_P.append(total_N)
        return torch.stack(sums_P, dim=1)


def num_nonfinite(values: Tensor) -> Tensor:
    """Elements that are NaN or infinite, a scalar on the device."""
    return values.isfinite().logical_not_().sum()


def pieces(first: Tensor | None, other: Tensor | None) -> Iterator[Pair]:
    """Both lists' elements in pieces of equal length; a tensor that is missing is zeros.

    Args:
        first: x.
        other: y, in the shape of x.
    """
    there = first if first is not None else other
    if there is None or there.numel() == 0:
        return
    size = PIECE_ON_HOST if there.is_cpu else PIECE_ON_DEVICE
    x = torch.zeros_like(there) if first is None else first
    y = torch.zeros_like(there) if other is None else other
    yield from zip(x.reshape(-1).split(size), y.reshape(-1).split(size), strict=True)


def _dot_terms(x: Tensor, y: Tensor, *_: object) -> list[Tensor]:
    return [x * x, y * y, x * y]


def _accumulate_terms(x: Tensor, y: Tensor, *_: object) -> list[Tensor]:
    return [x * x, y * y]


def _preconditioned_terms(gradient: Tensor, second_moment: Tensor, eps: Any, bias_correction: Any) -> list[Tensor]:
    divisor = (second_moment / bias_correction).sqrt_().add_(eps)
    return [(gradient / divisor.masked_fill_(second_moment == 0, torch.inf)).square_()]


def _sign_terms(x: Tensor, y: Tensor, factor_a: Any, factor_b: Any) -> list[Tensor]:
    a, b = x * factor_a, y * factor_b
    return [(a - b).abs_(), (a.abs() + b.abs()) / 2, (a.sign() * b + b.sign() * a) / 2]


TERMS: dict[Operation, Terms] = {
    Operation.DOTS: _dot_terms,
    Operation.ACCUMULATE: _accumulate_terms,
    Operation.PRECONDITIONED: _preconditioned_terms,
    Operation.SIGNS: _sign_terms,
}
