"""Squared norms of a small model's gradients, all small batches of a step at once.

Where a backward takes less than a millisecond, a reduction after each one costs more than what it reduces. So the
gradients of a small batch are only copied side by side into one row of a buffer, and the buffer is reduced once.
"""

# K small batches, P parameters, C columns (all parameters, then each group), R parts of 256 elements

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.squared_norms import ROW, dense_values

MAX_ELEMENTS = 1 << 17
"""Elements of a model, padded, up to which copying wins."""

BUFFER_BYTES = 4 << 20


class GradientRows:
    """A buffer with one row of all gradients for each small batch.

    Args:
        parameters: Of one device and dtype.
        member_PC: 1 where a parameter belongs to a column, fp64.
    """

    def __init__(self, parameters: Sequence[Tensor], member_PC: Tensor) -> None:
        parts_P = [-(-p.numel() // ROW) for p in parameters]
        self._dtype = torch.float64 if parameters[0].dtype == torch.float64 else torch.float32
        self._zeros = [torch.zeros(p.numel(), dtype=self._dtype) for p in parameters]
        self._padding = [
            torch.zeros(parts * ROW - p.numel(), dtype=self._dtype)
            for parts, p in zip(parts_P, parameters, strict=True)
        ]
        self._member_RC = member_PC.repeat_interleave(torch.tensor(parts_P), dim=0)
        row_elements = sum(parts_P) * ROW
        self.capacity = max(2, BUFFER_BYTES // (row_elements * self._dtype.itemsize))
        self._buffer_K = torch.empty(self.capacity, row_elements, dtype=self._dtype)
        self.num_rows = 0

    @staticmethod
    def suits(parameters: Sequence[Tensor]) -> bool:
        """Whether a model is small enough, in one place and of one kind."""
        first = parameters[0]
        return (
            first.is_cpu
            and sum(-(-p.numel() // ROW) * ROW for p in parameters) <= MAX_ELEMENTS
            and all(p.device == first.device and p.dtype == first.dtype and not p.is_complex() for p in parameters)
        )

    def clear(self) -> None:
        """Forget every row."""
        self.num_rows = 0

    def add(self, gradients: Sequence[Tensor | None]) -> None:
        """Copy the gradients of all parameters into the next row; zeros where there is none."""
        pieces: list[Tensor] = []
        for gradient, zeros, padding in zip(gradients, self._zeros, self._padding, strict=True):
            pieces.append(zeros if gradient is None else dense_values(gradient).reshape(-1))
            pieces.append(padding)
        torch.cat(pieces, out=self._buffer_K[self.num_rows])
        self.num_rows += 1

    def merge_last_two(self) -> None:
        """Make one row of the last two, which hold different parameters."""
        self.num_rows -= 1
        self._buffer_K[self.num_rows - 1] += self._buffer_K[self.num_rows]

    def take(self) -> Tensor:
        """Σ g² of each row and column, [K, C] fp64; then forget."""
        parts_KR = torch.linalg.vector_norm(self._buffer_K[: self.num_rows].view(self.num_rows, -1, ROW), dim=2)
        self.num_rows = 0
        sq_norm_KC: Tensor = parts_KR.double().square_() @ self._member_RC
        return sq_norm_KC
