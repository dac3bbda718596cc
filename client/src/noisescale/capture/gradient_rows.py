"""Squared norms of a small model's gradients, all small batches of a step at once.

Where a backward takes less than a millisecond, a reduction after each one costs more than what it reduces. So the
gradients are kept until they fill a few megabytes or the step is logged, laid side by side and reduced together.
"""

# K small batches, P parameters, C columns (all parameters, then each group), R parts of 256 elements

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._utils import _flatten_dense_tensors

from noisescale.capture.gradient_lists import Gradients, total
from noisescale.capture.squared_norms import ROW, dense_values

MAX_ELEMENTS = 1 << 17
"""Elements of a model, padded, up to which this wins."""

KEPT_BYTES = 4 << 20


class GradientRows:
    """A row of all gradients for each small batch.

    Args:
        parameters: Of one device and dtype.
        member_PC: 1 where a parameter belongs to a column, fp64.

    Attributes:
        capacity: Rows that may wait.
    """

    def __init__(self, parameters: Sequence[Tensor], member_PC: Tensor) -> None:
        parts_P = [-(-p.numel() // ROW) for p in parameters]
        dtype = parameters[0].dtype
        # Zeros up to the next part stand behind each gradient; where that is whole nothing does.
        self._padding = [
            torch.zeros(parts * ROW - p.numel(), dtype=dtype) if p.numel() % ROW else None
            for parts, p in zip(parts_P, parameters, strict=True)
        ]
        self._zeros = [torch.zeros(p.numel(), dtype=dtype) for p in parameters]
        self._member_RC = member_PC.repeat_interleave(torch.tensor(parts_P), dim=0)
        self.capacity = max(2, KEPT_BYTES // (sum(parts_P) * ROW * dtype.itemsize))
        self.clear()

    @staticmethod
    def suits(parameters: Sequence[Tensor]) -> bool:
        """Whether a model is small enough, on the CPU and of one real dtype of 32 or 64 bits."""
        dtype = parameters[0].dtype
        return (
            dtype in (torch.float32, torch.float64)
            and sum(-(-p.numel() // ROW) * ROW for p in parameters) <= MAX_ELEMENTS
            and all(p.is_cpu and p.dtype == dtype for p in parameters)
        )

    def clear(self) -> None:
        """Forget every row."""
        self._rows: list[Gradients] = []

    @property
    def num_rows(self) -> int:
        """Rows that wait."""
        return len(self._rows)

    def add(self, gradients: Gradients) -> None:
        """Keep the gradients of all parameters as the next row; zeros where there is none."""
        self._rows.append(gradients)

    def total(self, index: int) -> Tensor | None:
        """Sum of a parameter's gradients over the rows that wait; None of none."""
        return total([row[index] for row in self._rows])

    def take(self) -> Tensor:
        """Σ g² of each row and column, [K, C] fp64; then forget."""
        pieces: list[Tensor] = []
        for row in self._rows:
            for gradient, padding, zeros in zip(row, self._padding, self._zeros, strict=True):
                pieces.append(zeros if gradient is None else dense_values(gradient))
                if padding is not None:
                    pieces.append(padding)
        flat = _flatten_dense_tensors(pieces)  # as DistributedDataParallel does: a third of cat's time
        num_rows = len(self._rows)
        part_KR = torch.linalg.vector_norm(flat.view(num_rows, -1, ROW), dim=2)
        self.clear()
        sq_norm_KC: Tensor = part_KR.double().square_() @ self._member_RC
        return sq_norm_KC
