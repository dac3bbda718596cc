"""Kind `spectral`: the noise scale of orthogonalised updates (Muon, spectral descent), in the nuclear norm."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from noisescale.capture.kinds.halves import Halves, real_coordinates, wide_dtype
from noisescale.capture.kinds.matrix_roots import gram_of_shorter_side, polar_factor, trace_of_root
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.dual_norm_noise_scale import Bracket, DualNorms, DualNormSeries, deviation_from_roots
from noisescale_core.estimators.noise_scale import Terms

MIN_SMALL_BATCHES = 4

EVERY = 20
"""Steps from one that is measured to the next, unless asked otherwise."""


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
