"""Squared norms of a small model's gradients, all small batches of several steps at once.

Where a backward takes less than a millisecond, a reduction after each one costs more than what it reduces, and code
that runs once a step is slow because the training has pushed it out of the processor's caches. So the gradients of a
step are laid side by side in one buffer, and those of several steps are reduced together.
"""

# K small batches, P parameters, C columns (all parameters, then each group), R parts of 256 elements

import itertools
import math
import operator
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from noisescale.capture.small_batches.gradient_lists import Gradients, total
from noisescale.capture.sums.device_values import HELD_SECONDS, HeldNorms, HeldRows
from noisescale.kernels.squared_norms import ROW

MAX_ELEMENTS = 1 << 17
"""Elements of a model up to which this wins."""

KEPT_BYTES = 4 << 20

HELD_BYTES = 1 << 20
"""Of the rows of several steps: more would leave the processor's caches before they are reduced."""

ONLY_TENSORS = frozenset({Tensor})

IS_SPARSE = operator.attrgetter("is_sparse")


class GradientRows:
    """A row of all gradients for each small batch.

    Args:
        parameters: Of one device and dtype.
        member_PC: 1 where a parameter belongs to a column, fp64.

    Attributes:
        capacity: Rows that may wait.
    """

    def __init__(self, parameters: Sequence[Tensor], member_PC: Tensor) -> None:
        self._places, num_parts = _places(parameters, member_PC)
        self._member_RC = member_PC[[index for index, parts in num_parts for _ in range(parts)]]
        self._shapes = [p.shape for p in parameters]
        self._zeros = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        row_bytes = len(self._member_RC) * ROW * parameters[0].element_size()
        self.capacity = max(2, KEPT_BYTES // row_bytes)
        self._num_held = HELD_BYTES // row_bytes
        self._buffer_KRN = parameters[0].new_zeros(0, len(self._member_RC), ROW, requires_grad=False)
        self._views: list[Tensor] = []
        self._held: HeldRows | None = None
        self._newest = -math.inf
        self.clear()

    @staticmethod
    def suits(parameters: Sequence[Tensor]) -> bool:
        """Whether a model is small enough, on the CPU and of one real dtype of 32 or 64 bits."""
        dtype = parameters[0].dtype
        return (
            dtype in (torch.float32, torch.float64)
            and sum(p.numel() for p in parameters) <= MAX_ELEMENTS
            and all(p.is_cpu and p.dtype == dtype for p in parameters)
        )

    def clear(self) -> None:
        """Forget every row that is not held."""
        self._rows: list[Gradients] = []

    @property
    def num_rows(self) -> int:
        """Rows that wait."""
        return len(self._rows)

    def add(self, gradients: Gradients) -> None:
        """Keep the gradients of all parameters as the next row; zeros where there is none."""
        self._rows.append(gradients)

    def add_all(self, rows: Sequence[Gradients]) -> None:
        """Keep several rows."""
        self._rows += rows

    @property
    def waiting(self) -> Sequence[Gradients]:
        """The gradients of each row that waits."""
        return self._rows

    def total(self, index: int) -> Tensor | None:
        """Sum of a parameter's gradients over the rows that wait; None of none."""
        return total([row[index] for row in self._rows])

    def hold(self) -> HeldNorms:
        """Copy the rows, to be reduced with those of other steps; then forget them."""
        num_rows, num_parameters = len(self._rows), len(self._shapes)
        held = self._held
        if held is None or not held.has_room(num_rows):
            if held is not None and not held.is_reduced:
                held.reduce()
            held = self._held = HeldRows(self._reduce, max(num_rows, self._num_held), self._deadline())
        norms = HeldNorms(held, num_rows, self._member_RC.shape[1])
        first = held.num_rows
        held.add(num_rows)
        if held.num_rows > len(self._buffer_KRN):
            self._grow(held.num_rows)
        gradients = self._dense(list(itertools.chain.from_iterable(self._rows)))
        self.clear()
        with torch.no_grad():
            # into memory that stays: a third of the time of laying them side by side anew
            views = self._views[first * num_parameters : (first + num_rows) * num_parameters]
            torch._foreach_copy_(views, gradients)
        return norms

    def _dense(self, gradients: list[Any]) -> list[Tensor]:
        """The same, with zeros where there is none."""
        if ONLY_TENSORS.issuperset(map(type, gradients)) and not any(map(IS_SPARSE, gradients)):
            return gradients
        return [
            zeros if gradient is None else gradient.to_dense() if gradient.is_sparse else gradient
            for gradient, zeros in zip(gradients, itertools.cycle(self._zeros), strict=False)
        ]

    def _deadline(self) -> float:
        """Now, unless rows were held not long ago."""
        before, self._newest = self._newest, time.perf_counter()
        return self._newest + HELD_SECONDS if self._newest - before < HELD_SECONDS else self._newest

    def take(self) -> Tensor:
        """Σ g² of each row and column, [K, C] fp64; then forget."""
        return self.hold().tensor()

    def _reduce(self, num_rows: int) -> Tensor:
        with torch.no_grad():
            part_KR = torch.linalg.vector_norm(self._buffer_KRN[:num_rows], dim=2)
        sq_norm_KC: Tensor = part_KR.double().square_() @ self._member_RC
        return sq_norm_KC

    def _grow(self, num_rows: int) -> None:
        """Make room for so many rows at least; zeros stay between gradients, where no view reaches."""
        before = self._buffer_KRN
        self._buffer_KRN = before.new_zeros(max(num_rows, self._num_held), *before.shape[1:])
        self._buffer_KRN[: len(before)] = before
        self._views = [
            row[place : place + shape.numel()].view(shape)
            for row in self._buffer_KRN.flatten(1)
            for place, shape in zip(self._places, self._shapes, strict=True)
        ]


def _places(parameters: Sequence[Tensor], member_PC: Tensor) -> tuple[list[int], list[tuple[int, int]]]:
    """Where each parameter lies in a row, and (index of its first parameter, parts) of each run of equal columns.

    Only where the columns change does a parameter have to begin with a part of its own.
    """
    columns = [tuple(row) for row in member_PC.tolist()]
    places: list[int] = []
    num_parts: list[tuple[int, int]] = []
    end = 0
    for index, parameter in enumerate(parameters):
        if index == 0 or columns[index] != columns[index - 1]:
            end = sum(parts for _, parts in num_parts) * ROW
            start, first = end, index
            num_parts.append((first, 0))
        places.append(end)
        end += parameter.numel()
        num_parts[-1] = (first, -(-(end - start) // ROW))
    return places, num_parts
