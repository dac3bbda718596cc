"""Σ x² of each row of a matrix, to 1e-6 relative, without waiting for the device."""

# N rows, M elements of a row, R pieces of a row

import torch
from torch import Tensor

from noisescale.kernels.squared_norms import ROW, SMALL


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
