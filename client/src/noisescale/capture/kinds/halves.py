"""The gradients of a step's small batches, summed in two halves: the odd ones and the even ones."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


class Halves:
    """Two sums of each parameter's gradients, in fp32 at least: 8 bytes a parameter.

    `p.grad` cannot stand in for one of them: in 16 bit it is rounded at each small batch, and other ranks' gradients
    may be in it.
    """

    def __init__(self, num_parameters: int) -> None:
        self._num_parameters = num_parameters
        self.clear()

    def clear(self) -> None:
        """Forget the step."""
        self._sums: tuple[list[Tensor | None], list[Tensor | None]] = (
            [None] * self._num_parameters,
            [None] * self._num_parameters,
        )
        self._sizes = [0.0, 0.0]
        self.num_small_batches = 0

    @property
    def current(self) -> int:
        """The half that the running small batch belongs to, 0 or 1."""
        return self.num_small_batches % 2

    @property
    def size(self) -> float:
        """Examples so far in the half that the running small batch belongs to."""
        return self._sizes[self.current]

    @property
    def indices(self) -> set[int]:
        """Parameters that had a gradient in this step, up to the last small batch."""
        return {index for sums in self._sums for index, held in enumerate(sums) if held is not None}

    def mean(self, index: int) -> Tensor | None:
        """Mean so far of s_k / n_k in the half that the running small batch belongs to; None where it is 0."""
        held = self._sums[self.current][index]
        return None if held is None else held / self.size

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Add parts of the running small batch."""
        sums = self._sums[self.current]
        for index, gradient in zip(indices, gradients, strict=True):
            coordinates = real_coordinates(gradient)
            held = sums[index]
            if held is None:
                sums[index] = coordinates.to(wide_dtype(coordinates), copy=True)
            else:
                held.add_(coordinates)

    def end_small_batch(self, size: float) -> None:
        """Close the small batch; one without examples counts as none."""
        if size > 0:
            self._sizes[self.current] += size
            self.num_small_batches += 1

    @property
    def are_there(self) -> bool:
        """Whether both halves have examples."""
        return self.num_small_batches >= 2

    @property
    def shares(self) -> tuple[float, float]:
        """n_a / N and n_b / N."""
        total = sum(self._sizes)
        return self._sizes[0] / total, self._sizes[1] / total

    @property
    def sums(self) -> tuple[Sequence[Tensor | None], Sequence[Tensor | None]]:
        """Σ s_k of each parameter in both halves, times the loss scale; None where there was no gradient."""
        return self._sums

    def mean_gradients(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Of each parameter with a gradient its index and the mean gradients of both halves, times the loss scale.

        A half without gradient has zeros.
        """
        share_a, share_b = self.shares
        for index, (sum_a, sum_b) in enumerate(zip(*self._sums, strict=True)):
            if sum_a is not None or sum_b is not None:
                a = torch.zeros_like(sum_b) if sum_a is None and sum_b is not None else sum_a
                b = torch.zeros_like(sum_a) if sum_b is None and sum_a is not None else sum_b
                assert a is not None
                assert b is not None
                yield index, a / share_a, b / share_b


def real_coordinates(gradient: Tensor) -> Tensor:
    """The gradient as a dense real tensor, without a copy where it is one."""
    dense = gradient.detach() if gradient.layout == torch.strided else gradient.detach().to_dense()
    return torch.view_as_real(dense) if dense.is_complex() else dense


def wide_dtype(values: Tensor) -> torch.dtype:
    """fp64 stays, everything else is summed in fp32."""
    return torch.float64 if values.dtype == torch.float64 else torch.float32
