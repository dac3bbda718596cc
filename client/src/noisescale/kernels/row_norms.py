"""Squared norms of many tensors by PyTorch's own operators, to 1e-6 relative, without waiting for the device.

The two norms of an estimate are nearly equal, so their errors come out amplified by about 2 (1 + B_simple / B):
PyTorch's own fp32 norm, which is 5.5e-3 low at 38.6 M elements on the CPU, would decide the answer.
"""

# R rows

from collections.abc import Sequence

import torch
from torch import Tensor

ROW = 256
"""Elements per row. Errors of random rows cancel (3e-9); where all elements of a gradient are equal they do not: then
256 elements err by 6e-7, 1024 by 1.8e-6, for a sixth less time."""

SMALL = 8192
"""Elements up to which one fp64 pass is quicker than cutting rows."""

BUFFER = 256 * ROW
"""Elements of the fp32 buffer that 16-bit gradients pass through; it stays in the cache."""


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
    flat = values.reshape(-1).contiguous()  # strided rows would be added up one by one, with ten times the error
    if flat.dtype in (torch.float32, torch.float64):
        return _row_norms(flat)
    buffer = torch.empty(BUFFER, dtype=torch.float32)
    return torch.cat([_row_norms(buffer[: part.numel()].copy_(part)) for part in flat.split(BUFFER)])


def norms_of_condensed(condensed: Sequence[Tensor]) -> list[Tensor]:
    """Norms as fp64 scalars of values that are all on one device; what `condense` gave is as good as the tensor."""
    if condensed[0].is_cpu:
        return _foreach_norm(list(condensed), torch.float64)
    # dtype=float32: without it the norm of 16-bit gradients is rounded to 16 bits, 3.6e-3 off.
    doubles = [value.dtype == torch.float64 for value in condensed]
    wide = iter(_foreach_norm([v for v, is_double in zip(condensed, doubles, strict=True) if is_double], torch.float64))
    rest = iter(
        _foreach_norm([v for v, is_double in zip(condensed, doubles, strict=True) if not is_double], torch.float32)
    )
    return [next(wide) if is_double else next(rest).double() for is_double in doubles]


def _foreach_norm(values: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return list(torch._foreach_norm(values, 2, dtype=dtype)) if values else []


def _row_norms(flat: Tensor) -> Tensor:
    if flat.numel() % ROW == 0:
        whole_rows: Tensor = torch.linalg.vector_norm(flat.view(-1, ROW), dim=1)
        return whole_rows
    whole = flat.numel() // ROW * ROW
    norm_R: Tensor = torch.linalg.vector_norm(flat[:whole].view(-1, ROW), dim=1)
    return torch.cat([norm_R, torch.linalg.vector_norm(flat[whole:]).unsqueeze(0)])
