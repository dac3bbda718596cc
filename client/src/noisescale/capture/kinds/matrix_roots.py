"""Polar factors, nuclear norms and traces of matrix roots."""

import torch
from torch import Tensor

FAST = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd quintic that lifts small singular values 3.4 times an iteration, without settling at 1.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"."""

SETTLING = (15 / 8, -10 / 8, 3 / 8)
"""The quintic that converges to 1 with order 3."""

NUM_FAST, NUM_SETTLING = 12, 6
"""Iterations: singular values down to 1e-6 of the Frobenius norm arrive at 1."""


def polar_factor(matrix: Tensor) -> Tensor:
    """The matrix with its singular values set to 1: the direction of a spectral update.

    By singular values on the CPU; elsewhere by products of matrices alone, which never waits for the device and is
    many times as quick there.

    Args:
        matrix: 2-D, fp32 or fp64.
    """
    if not matrix.is_cpu:
        return polar_by_iteration(matrix)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    factor: Tensor = left @ right
    return factor


def polar_by_iteration(matrix: Tensor) -> Tensor:
    """The polar factor by Newton-Schulz iteration; singular values below 1e-6 of the largest end up between 0 and 1.

    Source: Higham 2008, "Functions of Matrices", section 8.3, with quintics.
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    wide = matrix.mT if is_tall else matrix
    factor: Tensor = wide / torch.linalg.vector_norm(wide).clamp_min(torch.finfo(wide.dtype).tiny)
    for iteration in range(NUM_FAST + NUM_SETTLING):
        linear, cubic, quintic = FAST if iteration < NUM_FAST else SETTLING
        gram = factor @ factor.mT
        factor = linear * factor + (cubic * gram + quintic * (gram @ gram)) @ factor
    return factor.mT if is_tall else factor


def gram_of_shorter_side(matrix: Tensor) -> Tensor:
    """MᵀM or MMᵀ, whichever is smaller; on the CPU in fp64.

    The root of a rounded zero is √ε of the largest: 1e-8 in fp64, 3e-4 in fp32, which accelerators use for its speed.
    """
    if matrix.is_cpu:
        matrix = matrix.double()
    return matrix.mT @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.mT


def trace_of_root(gram: Tensor) -> Tensor:
    """The trace of V^½, V positive semidefinite, in fp64; elements that are not finite count as 0.

    On an accelerator it waits until the eigenvalues have converged: PyTorch offers none that does not.
    """
    finite = torch.nan_to_num(gram.double(), 0.0, 0.0, 0.0)
    roots: Tensor = torch.linalg.eigvalsh(finite).clamp_min_(0).sqrt_()
    return roots.sum()
