"""Kind `sign`: the noise scale of sign updates (signSGD, Signum, Lion), in the ℓ₁ norm."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from noisescale.capture.kinds.halves import Halves
from noisescale.capture.sums.row_sums import list_like
from noisescale.kernels import PREFERENCE
from noisescale.kernels.choice import takes_triton
from noisescale.kernels.operations import Operation
from noisescale_core.estimators.dual_norm_noise_scale import Bracket, DualNorms, DualNormSeries, deviation_from_halves
from noisescale_core.estimators.noise_scale import Terms


class SignKind:
    """B_sign = (Σ σ_i)² / (Σ |G_i|)², with σ_i the deviation of one example's gradient in coordinate i.

    Biased, within bounds: see `estimators/dual_norm_noise_scale.py`. While the batch is small against B_sign, below
    about one times it, Σ |G_i| cannot be told from noise and there are no terms; `bracket` says what is known.

    It keeps two copies of the gradients in 32 bit while a step is measured.

    Source: Naganuma et al. 2026, arXiv:2602.03001, which divides by the plug-in |ḡ|₁² instead.
    """

    name: ClassVar[str] = "sign"
    is_biased: ClassVar[bool] = True

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        """Measures all parameters.

        Args:
            parameters: On which small batches are reported, in the order of their indices; at least one.
        """
        self._device = parameters[0].device
        self._halves = Halves(len(parameters))
        self._series = DualNormSeries()

    def clear(self) -> None:
        """Forget the step: a new one begins."""
        self._halves.clear()

    def is_ready(self) -> bool:
        """Every step can be measured."""
        return True

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Take parts of one small batch; see `Kind`."""
        self._halves.add(indices, gradients)

    def end_small_batch(self, size: float) -> None:
        """Close the small batch of n_k examples."""
        self._halves.end_small_batch(size)

    def values(self, *, scale: float) -> Tensor:
        """[|a - b|₁, U, L, n_a / N, n_b / N]; all zero without two small batches."""
        sums = torch.zeros(3, dtype=torch.float64, device=self._device)
        if not self._halves.are_there:
            return torch.cat([sums, sums[:2]])
        fused = self._in_one_pass()
        sums = self._one_by_one(sums) if fused is None else fused
        shares = [torch.full_like(sums[:1], share) for share in self._halves.shares]
        return torch.cat([sums / scale, *shares])

    def _in_one_pass(self) -> Tensor | None:
        """|a - b|₁, U and L by one kernel; None where there is none for these halves."""
        known = [(a, b) for a, b in zip(*self._halves.sums, strict=True) if a is not None or b is not None]
        there = [tensor for pair in known for tensor in pair if tensor is not None]
        is_on_device = all(tensor.device == self._device for tensor in there)
        if not is_on_device or not takes_triton(PREFERENCE.kernels, self._device, Operation.SIGNS):
            return None
        either = [(b if a is None else a) for a, b in known]
        pairs = list_like([tensor for tensor in either if tensor is not None])
        share_a, share_b = self._halves.shares
        a, b = [a for a, _ in known], [b for _, b in known]
        found = pairs.sign_statistics(a, b, (1 / share_a, 1 / share_b))
        return torch.stack([found.distance[-1], found.upper[-1], found.lower[-1]])

    def _one_by_one(self, sums: Tensor) -> Tensor:
        for _, a, b in self._halves.mean_gradients():
            sums += torch.stack(
                [
                    _total((a - b).abs_()),
                    (_total(a.abs()) + _total(b.abs())) / 2,
                    (_total(a.sign().mul_(b)) + _total(b.sign().mul_(a))) / 2,
                ]
            ).to(self._device, non_blocking=True)
        return sums

    def terms(
        self, values: Sequence[float], *, num_small_batches: int, batch_size: float, scale: float = 1.0
    ) -> Terms | None:
        """(Σ σ_i)² and (Σ |G_i|)²; None while the batch is too small to see the second."""
        distance, upper, lower, share_a, share_b = values
        if num_small_batches < 2 or not (share_a > 0 and share_b > 0):
            return None
        noise = deviation_from_halves(distance=distance, share_a=share_a, share_b=share_b, batch_size=batch_size)
        return self._series.add(DualNorms(noise=noise / scale, upper=upper / scale, lower=lower / scale))

    def bracket(self) -> Bracket | None:
        """Between which values B_sign lies as far as is known, also where there are no terms."""
        return self._series.bracket()


def _total(values: Tensor) -> Tensor:
    return values.sum(dtype=torch.float64)
