"""|Σ_t grad_output_t ⊗ activation_t|² of each example, by the product itself or by Gram matrices.

Source: T = 1, where it is |grad_output|² |activation|²: Goodfellow 2015, arXiv:1510.01799, section 4; sequences:
Li et al. 2022, arXiv:2110.05679, section 4 ("ghost clipping"), and Gray et al. 2024, arXiv:2411.00999, section 3.
Departure: Gram matrices are made in fp64 whatever the training's precision, as their sum cancels: in fp32 a small
gradient made of large terms came out 6e-4 wrong, in 16 bit 760 %.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from noisescale.capture.per_example.checksum import Checksum
from noisescale.capture.per_example.contributions import OuterProducts, budget_on, slices, wide
from noisescale.kernels import PREFERENCE
from noisescale.kernels import outer_sq_norms as outer_sq_norms_kernel
from noisescale.kernels.outer_sq_norms.choice import takes_triton
from noisescale.kernels.squared_norms import ROW, SMALL

# B examples, b of a slice, T positions, K channel groups, N = b K rows, O outputs, o outputs of a part, I inputs
# In row_sq_norms: N rows, M elements of a row, R pieces of a row

GRAM_SHARE_ON_CPU = 1 / 3
"""Gram matrices win below this share of T* = O I / (O + I), where both take as many operations: measured on one core at
64² to 3072 × 768; at half of T* they take as long, as their fp64 is half as fast."""

GRAM_SHARE_ON_ACCELERATOR = 1 / 16
"""Not measured; many accelerators have little fp64."""

DOUBLE_BYTES = 8


# Σ x² of each row of a matrix, to 1e-6 relative, without waiting for the device.


def row_sq_norms(value_NM: Tensor) -> Tensor:
    """[N] fp64: squared norm of each row.

    Rows are cut into pieces of 256 elements: PyTorch's own fp32 norm of a long row is too low, see `squared_norms`.
    """
    if value_NM.numel() <= SMALL or value_NM.dtype == torch.float64:
        norm_N: Tensor = torch.linalg.vector_norm(value_NM, dim=1, dtype=torch.float64)
        return norm_N.square_()
    whole = value_NM.shape[1] // ROW * ROW
    sq_norm_N: Tensor = torch.linalg.vector_norm(value_NM[:, whole:], dim=1).double().square_()
    if whole:
        norm_NR = torch.linalg.vector_norm(value_NM[:, :whole].unflatten(1, (-1, ROW)), dim=2)
        sq_norm_N += norm_NR.double().square_().sum(1)
    return sq_norm_N


def outer_sq_norms(products: Sequence[OuterProducts], checksum: Checksum | None, device: torch.device) -> Tensor:
    """[B] fp64: squared norm of each example's summed products.

    Args:
        products: Of the same examples and of one shape [K, O, I]; positions are put in a row.
        checksum: Is told every product; None: nobody is.
        device: Of all.
    """
    joined = joined_products(products)
    parts = []
    for start, stop in slices(joined.num_examples, _bytes_an_example(joined), device):
        grad_output_NTO, activation_NTI = joined.rows(start, stop)
        if checksum is not None:
            checksum.add_products(grad_output_NTO, _widened(activation_NTI))
        sq_norm_N = _sq_norms(grad_output_NTO, activation_NTI)
        groups = joined.num_channel_groups
        parts.append(sq_norm_N if groups == 1 else sq_norm_N.view(stop - start, groups).sum(1))
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _sq_norms(grad_output_NTO: Tensor, activation_NTI: Tensor) -> Tensor:
    """[N] fp64, by whatever is quickest for these shapes, types and device."""
    if activation_NTI.shape[1] == 1:
        return row_sq_norms(_widened(grad_output_NTO[:, 0])) * row_sq_norms(_widened(activation_NTI[:, 0]))
    if _is_fused(grad_output_NTO, activation_NTI):
        return outer_sq_norms_kernel.fused_outer_sq_norms(grad_output_NTO, activation_NTI)
    if _goes_through_gram(grad_output_NTO, activation_NTI):
        return through_gram(grad_output_NTO, activation_NTI)
    return directly(grad_output_NTO, _widened(activation_NTI))


def _is_fused(grad_output_NTO: Tensor, activation_NTI: Tensor) -> bool:
    """Whether our kernel makes the products, which then take no memory."""
    return (
        activation_NTI.shape[1] > 1
        and not _goes_through_gram(grad_output_NTO, activation_NTI)
        and takes_triton(PREFERENCE.kernels, grad_output_NTO, activation_NTI)
    )


def _goes_through_gram(grad_output_NTO: Tensor, activation_NTI: Tensor) -> bool:
    num_positions, num_inputs = activation_NTI.shape[1:]
    return num_positions <= gram_is_quicker_below(grad_output_NTO.shape[2], num_inputs, activation_NTI.device)


def joined_products(products: Sequence[OuterProducts]) -> OuterProducts:
    """Products of the same examples and shape as one, their positions in a row."""
    if len(products) == 1:
        return products[0]
    return replace(
        products[0],
        num_positions=sum(product.num_positions for product in products),
        is_view=False,
        rows=lambda start, stop: _joined_rows(products, start, stop),
    )


def gram_is_quicker_below(num_outputs: int, num_inputs: int, device: torch.device) -> float:
    """Positions up to which Gram matrices [T, T] are quicker than the product [O, I]."""
    share = GRAM_SHARE_ON_CPU if device.type == "cpu" else GRAM_SHARE_ON_ACCELERATOR
    return share * num_outputs * num_inputs / (num_outputs + num_inputs)


def directly(grad_output_NTO: Tensor, activation_NTI: Tensor) -> Tensor:
    """[N] fp64: squared norms by the products [O, I], a part of the outputs at a time."""
    bytes_an_output = len(activation_NTI) * activation_NTI.shape[2] * activation_NTI.element_size()
    sq_norm_N = torch.zeros(len(activation_NTI), dtype=torch.float64, device=activation_NTI.device)
    for grad_output_NTo in _output_parts(grad_output_NTO, bytes_an_output):
        product_NoI = torch.bmm(grad_output_NTo.transpose(1, 2), activation_NTI)
        sq_norm_N += row_sq_norms(product_NoI.flatten(1))
    return sq_norm_N


def through_gram(grad_output_NTO: Tensor, activation_NTI: Tensor) -> Tensor:
    """[N] fp64: squared norms by Σ_ts (grad_output_t · grad_output_s) (activation_t · activation_s)."""
    activation_NTI = activation_NTI.double()
    gram_NTT = torch.bmm(activation_NTI, activation_NTI.transpose(1, 2))
    bytes_an_output = grad_output_NTO.shape[0] * grad_output_NTO.shape[1] * DOUBLE_BYTES
    gram_of_outputs_NTT = torch.zeros_like(gram_NTT)
    for grad_output_NTo in _output_parts(grad_output_NTO, bytes_an_output):
        double_NTo = grad_output_NTo.double()
        gram_of_outputs_NTT.baddbmm_(double_NTo, double_NTo.transpose(1, 2))
    return gram_NTT.mul_(gram_of_outputs_NTT).sum((1, 2))


def _output_parts(grad_output_NTO: Tensor, bytes_an_output: int) -> Iterator[Tensor]:
    """The output gradients in parts of outputs within the budget, widened: squared norms of the parts add up."""
    num_outputs = grad_output_NTO.shape[2]
    size = max(1, budget_on(grad_output_NTO.device) // max(1, bytes_an_output))
    for start, stop in pairwise([*range(0, num_outputs, size), num_outputs]):
        yield _widened(grad_output_NTO[:, :, start:stop])


def _joined_rows(products: Sequence[OuterProducts], start: int, stop: int) -> tuple[Tensor, Tensor]:
    grad_outputs, activations = zip(*(product.rows(start, stop) for product in products), strict=True)
    return torch.cat(grad_outputs, dim=1), torch.cat(activations, dim=1)


def _bytes_an_example(product: OuterProducts) -> int:
    """What one example takes: its product [O, I] or its Gram matrices, and its rows where they are not views."""
    if product.is_view and _is_fused(*product.rows(0, 1)):
        return 0
    smaller = min(product.num_outputs * product.num_inputs, 2 * product.num_positions**2)
    rows = 0 if product.is_view else product.num_positions * (product.num_outputs + product.num_inputs)
    return DOUBLE_BYTES * product.num_channel_groups * (smaller + rows)


def _widened(value: Tensor) -> Tensor:
    return value.to(wide(value.dtype))
