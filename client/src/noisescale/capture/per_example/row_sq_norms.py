"""Σ x² of each row of a matrix, to 1e-6 relative, without waiting for the device."""

# N rows, M elements of a row, R pieces of a row

import torch
from torch import Tensor

from noisescale.capture.squared_norms import ROW


def row_sq_norms(value_NM: Tensor) -> Tensor:
    """[N] fp64: squared norm of each row.

    Rows are cut into pieces of 256 elements: PyTorch's own fp32 norm of a long row is too low, see `squared_norms`.
    """
    length = value_NM.shape[1]
    if length <= ROW or value_NM.dtype == torch.float64:
        return _piece_norms(value_NM).square_()
    whole = length // ROW * ROW
    norm_NR = _piece_norms(value_NM[:, :whole].unflatten(1, (-1, ROW)))
    sq_norm_N = norm_NR.square_().sum(1)
    return sq_norm_N if whole == length else sq_norm_N.add_(_piece_norms(value_NM[:, whole:]).square_())


def _piece_norms(value: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(value, dim=-1)
    return norm.double()
