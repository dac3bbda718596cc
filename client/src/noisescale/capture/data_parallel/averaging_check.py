"""Checks on a few elements that what came back from the other ranks is the mean of what went in.

A communication hook may sum instead of averaging, send nothing, or approximate: then |ḡ|² does not belong to the small
batches, and no estimate is better than a wrong one.
"""

# E elements looked at

from collections.abc import Sequence

import torch
from torch import Tensor

NUM_ELEMENTS = 8

TOLERANCE = 0.05
"""Share of the mean magnitude: 16-bit rounding is far below, a factor of 2 far above."""

NUM_VALUES = 3 * NUM_ELEMENTS


class AveragingCheck:
    """Elements of one parameter's gradient, before and after the ranks average it.

    Args:
        parameter: Any of them; one whose gradient is dense.
    """

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = parameter
        self._step = max(1, parameter.numel() // NUM_ELEMENTS)
        self._before_E: Tensor | None = None

    def see(self, parameter: Tensor) -> None:
        """Remember the elements before they are averaged: a hook that runs when the gradient is accumulated."""
        self._before_E = self._elements(parameter.grad)

    def values(self) -> Tensor | None:
        """Before, its magnitude, and after, fp64 [3 E], to be summed over ranks; None where nothing was seen."""
        before_E, self._before_E = self._before_E, None
        after_E = self._elements(self._parameter.grad)
        if before_E is None or after_E is None:
            return None
        return torch.cat([before_E, before_E.abs(), after_E])

    def _elements(self, gradient: Tensor | None) -> Tensor | None:
        if gradient is None or gradient.layout != torch.strided:
            return None
        found_E = gradient.detach().reshape(-1)[:: self._step][:NUM_ELEMENTS].double()
        return torch.nn.functional.pad(found_E, (0, NUM_ELEMENTS - found_E.numel()))


def is_average(summed: Sequence[float]) -> bool:
    """Whether the gradient afterwards is the mean over ranks, as far as it could be seen.

    Args:
        summed: `AveragingCheck.values()` summed over ranks; not finite where some rank saw nothing.
    """
    before, magnitude, after = (summed[i : i + NUM_ELEMENTS] for i in range(0, NUM_VALUES, NUM_ELEMENTS))
    return not any(abs(b - a) > TOLERANCE * m for b, m, a in zip(before, magnitude, after, strict=True))
