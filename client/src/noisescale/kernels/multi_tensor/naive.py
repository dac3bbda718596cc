"""The sums of `Operation` in plain PyTorch: what the kernel is tested against, and what runs where it cannot.

Everything is summed in fp64, in pieces, so that no second list of gradients is in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from noisescale.kernels.layout import Layout
from noisescale.kernels.operations import Lists, Operation

# P tensors, G groups, S sums: each tensor, then each group, then the total; N kinds of sums of an operation; R rows

ROW = 256
"""Elements per row. Errors of random rows cancel (3e-9); where all elements of a gradient are equal they do not: then
256 elements err by 6e-7, 1024 by 1.8e-6, for a sixth less time."""

SMALL = 8192
"""Elements up to which one fp64 pass is quicker than cutting rows."""

BUFFER = 256 * ROW
"""Elements of the fp32 buffer that 16-bit gradients pass through; it stays in the cache."""

PIECE_ON_HOST = 1 << 16
"""Elements converted at a time; they stay in the cache."""

PIECE_ON_DEVICE = 1 << 23
"""Elements converted at a time: few launches, 64 MiB."""

MAX_LISTS = 1024
"""Lists that are remembered, by their lengths: a backward pass hands its gradients over in several."""

Terms = Callable[..., list[Tensor]]


# Squared norms of many tensors by PyTorch's own operators, to 1e-6 relative, without waiting for the device.
#
# The two norms of an estimate are nearly equal, so their errors come out amplified by about 2 (1 + B_simple / B):
# PyTorch's own fp32 norm, which is 5.5e-3 low at 38.6 M elements on the CPU, would decide the answer.


def values_that_count(tensor: Tensor) -> Tensor:
    """The elements that count, as a real dense tensor."""
    if tensor.requires_grad:  # asking is five times as quick as detaching
        tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.coalesce().values()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def dense_values(gradient: Tensor) -> Tensor:
    """All elements, also of a sparse tensor; not of a complex one."""
    if gradient.requires_grad:
        gradient = gradient.detach()
    return gradient if gradient.layout == torch.strided else gradient.to_dense()


def condense(values: Tensor) -> Tensor:
    """Fewer numbers of the same norm: of a large tensor on the CPU the norms of its rows; else the values themselves.

    Args:
        values: From `values_that_count`.
    """
    if not values.is_cpu or values.numel() <= SMALL:
        return values
    # of strided rows the norms would be added up one by one, with ten times the error
    flat = values.view(-1) if values.is_contiguous() else values.reshape(-1).contiguous()
    if flat.dtype in (torch.float32, torch.float64):
        return _row_norms(flat)
    buffer = torch.empty(BUFFER, dtype=torch.float32)
    return torch.cat([_row_norms(buffer[: part.numel()].copy_(part)) for part in flat.split(BUFFER)])


def sq_norms_on_one_device(condensed: Sequence[Tensor]) -> Tensor:
    """Σ x² of each as fp64 [P], of values that are all on one device; what `condense` gave is as good as the tensor."""
    if condensed[0].is_cpu:
        # a norm a tensor takes its call, a copy in fp64 and a scalar: three times as long as all in one row
        flat = torch._utils._flatten_dense_tensors(condensed).double()
        lengths = _lengths_of(tuple([values.numel() for values in condensed]))
        # out of place: one tensor of fp64 by itself is still the gradient
        sums: Tensor = torch.segment_reduce(flat.square(), "sum", lengths=lengths, unsafe=True)
        return sums
    # dtype=float32: without it the norm of 16-bit gradients is rounded to 16 bits, 3.6e-3 off.
    doubles = [value.dtype == torch.float64 for value in condensed]
    wide = iter(_foreach_norm([v for v, is_double in zip(condensed, doubles, strict=True) if is_double], torch.float64))
    rest = iter(
        _foreach_norm([v for v, is_double in zip(condensed, doubles, strict=True) if not is_double], torch.float32)
    )
    return torch.stack([next(wide) if is_double else next(rest).double() for is_double in doubles]).square_()


@lru_cache(maxsize=MAX_LISTS)
def _lengths_of(numels: tuple[int, ...]) -> Tensor:
    return torch.tensor(numels, device="cpu")


def _foreach_norm(values: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return list(torch._foreach_norm(values, 2, dtype=dtype)) if values else []


def _row_norms(flat: Tensor) -> Tensor:
    if flat.numel() % ROW == 0:
        whole_rows: Tensor = torch.linalg.vector_norm(flat.view(-1, ROW), dim=1)
        return whole_rows
    whole = flat.numel() // ROW * ROW
    norm_R: Tensor = torch.linalg.vector_norm(flat[:whole].view(-1, ROW), dim=1)
    return torch.cat([norm_R, torch.linalg.vector_norm(flat[whole:]).unsqueeze(0)])


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
        sq_norm_P = sq_norms_on_one_device([condense(tensor) for tensor in values])
        if lists.inverse_scale is not None:
            sq_norm_P = sq_norm_P * lists.inverse_scale.double().square()
        return torch.stack([sq_norm_P, self._num_nonfinite(sq_norm_P, values)])

    def _num_nonfinite(self, sq_norm_P: Tensor, values: list[Tensor]) -> Tensor:
        if sq_norm_P.is_cpu:
            # the host can look at its own sums: clean data are not read again
            suspects = sq_norm_P.isfinite().logical_not_().tolist()
            return torch.tensor(
                [float(num_nonfinite(v)) if s else 0.0 for v, s in zip(values, suspects, strict=True)]
            ).double()
        return torch.stack([num_nonfinite(tensor) for tensor in values]).double()

    def _pair_sums(self, operation: Operation, lists: Lists) -> Tensor:
        sums_P = []
        for index, (first, other) in enumerate(zip(lists.first, lists.other, strict=True)):
            total_N = torch.zeros(operation.num_sums, dtype=torch.float64, device=self._device)
            numbers = lists.numbers_of(index)
            for x, y, *z in pieces(first, other, *lists.third[index : index + 1]):
                counts = num_nonfinite(x) + num_nonfinite(y)
                x, y = x.double(), y.double()
                if lists.inverse_scale is not None:
                    x = x * lists.inverse_scale
                    y = y * lists.inverse_scale if operation in SCALED_PAIRS else y
                terms = TERMS[operation](x, y, *numbers, *z)
                total_N += torch.stack([*(term.sum() for term in terms), counts.double()])
            sums_P.append(total_N)
        return torch.stack(sums_P, dim=1)


def num_nonfinite(values: Tensor) -> Tensor:
    """Elements that are NaN or infinite, a scalar on the device."""
    return values.isfinite().logical_not_().sum()


def pieces(*tensors: Tensor | None) -> Iterator[tuple[Tensor, ...]]:
    """The lists' elements in pieces of equal length; a tensor that is missing is zeros.

    Args:
        tensors: x, y, and z where there are three lists, of one shape.
    """
    there = next((tensor for tensor in tensors if tensor is not None), None)
    if there is None or there.numel() == 0:
        return
    size = PIECE_ON_HOST if there.is_cpu else PIECE_ON_DEVICE
    whole = [torch.zeros_like(there) if tensor is None else tensor for tensor in tensors]
    yield from zip(*(tensor.reshape(-1).split(size) for tensor in whole), strict=True)


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


def _metric_terms(x: Tensor, y: Tensor, eps: Any, scale: Any, z: Tensor) -> list[Tensor]:
    quotient = x / (y.sqrt() * scale).add_(eps)
    quotient = torch.where(y == 0, x * 0, quotient)
    return [x * x, x * quotient, z.double() * quotient]


SCALED_PAIRS = (Operation.DOTS, Operation.ACCUMULATE)
"""Whose y is a gradient, too, and is multiplied by an inverse scale."""

TERMS: dict[Operation, Terms] = {
    Operation.DOTS: _dot_terms,
    Operation.ACCUMULATE: _accumulate_terms,
    Operation.PRECONDITIONED: _preconditioned_terms,
    Operation.SIGNS: _sign_terms,
    Operation.METRIC: _metric_terms,
}
