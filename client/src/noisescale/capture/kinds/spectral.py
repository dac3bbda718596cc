"""Kind `spectral`: the noise scale of orthogonalised updates (Muon, spectral descent), in the nuclear norm."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from noisescale.capture.kinds.halves import Halves, real_coordinates, wide_dtype
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.dual_norm_noise_scale import Bracket, DualNorms, DualNormSeries, deviation_from_roots
from noisescale_core.estimators.noise_scale import Terms

FAST = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd quintic that lifts small singular values 3.4 times an iteration, without settling at 1.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"."""

SETTLING = (15 / 8, -10 / 8, 3 / 8)
"""The quintic that converges to 1 with order 3."""

NUM_FAST, NUM_SETTLING = 12, 6
"""Iterations: singular values down to 1e-6 of the Frobenius norm arrive at 1."""

MIN_SMALL_BATCHES = 4

EVERY = 20
"""Steps from one that is measured to the next, unless asked otherwise."""


# Polar factors, nuclear norms and traces of matrix roots.


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


class SpectralKind:
    """B_spectral = (Σ tr V^½)² / (Σ |G|_nuc)² over the matrices, V = E[(g - G)ᵀ(g - G)] on the shorter side.

    Only parameters of two dimensions count, as Muon updates no others; whether embedding and output layer are among
    them is up to who passes the parameters.

    Biased, within bounds: see `estimators/dual_norm_noise_scale.py`; the numerator is off besides, since V rests on K
    small batches. A measured step costs a Gram matrix for each small batch and matrix, about as much as min(m, n) more
    tokens of backward, then two polar factors and four sets of eigenvalues for each matrix, for which an accelerator
    is waited. Three copies of the matrices' gradients are kept in 32 bit meanwhile. So not every step is measured.

    Source: Naganuma et al. 2026, arXiv:2602.03001, whose code takes the root of the uncorrected V and the plug-in |ḡ|.
    """

    name: ClassVar[str] = "spectral"
    is_biased: ClassVar[bool] = True

    def __init__(self, parameters: Sequence[Tensor], *, every: int = EVERY) -> None:
        """Measures the matrices.

        Args:
            parameters: On which small batches are reported, in the order of their indices.
            every: Steps from one that is measured to the next.

        Raises:
            ConfigError: Where none has two dimensions.
        """
        self._is_matrix = [p.dim() == 2 and not p.is_complex() and p.numel() > 0 for p in parameters]
        if not any(self._is_matrix):
            raise ConfigError(
                f"kind 'spectral' measures matrices, got {len(self._is_matrix)} parameters of which none has two "
                "dimensions: leave it out"
            )
        self._device = parameters[0].device
        self._halves = Halves(len(parameters))
        self._series = DualNormSeries()
        self._every = every
        self._num_waited = every - 1
        self.clear()

    def clear(self) -> None:
        """Forget the step: a new one begins."""
        self._halves.clear()
        self._running: dict[int, Tensor] = {}
        self._scatters: tuple[dict[int, Tensor], dict[int, Tensor]] = ({}, {})
        self._num_examples = 0.0

    def is_ready(self) -> bool:
        """Whether enough steps have passed since the last one measured."""
        self._num_waited += 1
        return self._num_waited >= self._every

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Take parts of one small batch; see `Kind`."""
        for index, gradient in zip(indices, gradients, strict=True):
            if self._is_matrix[index]:
                coordinates = real_coordinates(gradient)
                self._running[index] = coordinates.to(wide_dtype(coordinates), copy=True)

    def end_small_batch(self, size: float) -> None:
        """Close the small batch of n_k examples."""
        running, self._running = self._running, {}
        if not size > 0:
            return
        self._num_examples += size
        for index in sorted(running.keys() | self._halves.indices):
            self._scatter(index, running.get(index), size)
        self._halves.add(list(running), list(running.values()))
        self._halves.end_small_batch(size)

    def values(self, *, scale: float) -> Tensor:
        """[root between the halves, within the first, within the second, of all, U, L]; zeros with fewer than 4."""
        self._num_waited = 0
        sums = torch.zeros(6, dtype=torch.float64, device=self._device)
        num = self._halves.num_small_batches
        if num < MIN_SMALL_BATCHES:
            return sums
        share_a, share_b = self._halves.shares
        for index, a, b in self._halves.mean_gradients():
            between = gram_of_shorter_side(a - b) * (share_a * share_b)
            first, second = (
                scatters.get(index, torch.zeros_like(between)) * self._num_examples for scatters in self._scatters
            )
            roots = (
                between,
                first / ((num + 1) // 2 - 1),
                second / (num // 2 - 1),
                (between + first + second) / (num - 1),
            )
            traces = torch.stack([trace_of_root(root) for root in roots])
            sums += torch.cat([traces, _bounds(a, b)]).to(self._device, non_blocking=True)
        return sums / scale

    def terms(
        self, values: Sequence[float], *, num_small_batches: int, batch_size: float, scale: float = 1.0
    ) -> Terms | None:
        """(Σ tr V^½)² and (Σ |G|_nuc)²; None while the batch is too small to see the second, or with K < 4."""
        two, first, second, every, upper, lower = values
        if num_small_batches < MIN_SMALL_BATCHES:
            return None
        noise = deviation_from_roots(
            two=two, first=first, second=second, every=every, num_small_batches=num_small_batches
        )
        return self._series.add(
            DualNorms(noise=noise * batch_size**0.5 / scale, upper=upper / scale, lower=lower / scale)
        )

    def bracket(self) -> Bracket | None:
        """Between which values B_spectral lies as far as is known, also where there are no terms."""
        return self._series.bracket()

    def _scatter(self, index: int, gradient: Tensor | None, size: float) -> None:
        """Add n_k (g_k - mean)ᵀ(g_k - mean) / N² of the running half.

        One small batch after the other against the mean so far: the difference of two sums of squares would lose in
        fp32 what noise there is where the batch is large.

        Source: Welford 1962, "Note on a method for calculating corrected sums of squares and products", with weights.
        """
        before, mean = self._halves.size, self._halves.mean(index)
        if not before > 0 or (gradient is None and mean is None):
            return
        deviation = torch.zeros_like(mean) if gradient is None and mean is not None else gradient
        assert deviation is not None
        deviation = deviation / size if mean is None else deviation / size - mean
        part = gram_of_shorter_side(deviation) * (size * before / (size + before))
        scatters = self._scatters[self._halves.current]
        scatters[index] = scatters[index].add_(part) if index in scatters else part


def _bounds(a: Tensor, b: Tensor) -> Tensor:
    """[U, L] of one matrix, fp64; NaN where a gradient is not finite, which no decomposition takes."""
    poison = (a.sum(dtype=torch.float64) + b.sum(dtype=torch.float64)) * 0
    polar_a, polar_b = (polar_factor(torch.nan_to_num(half, 0.0, 0.0, 0.0)) for half in (a, b))
    upper = (polar_a * a).sum(dtype=torch.float64) + (polar_b * b).sum(dtype=torch.float64)
    lower = (polar_a * b).sum(dtype=torch.float64) + (polar_b * a).sum(dtype=torch.float64)
    return torch.stack([upper, lower]) / 2 + poison
