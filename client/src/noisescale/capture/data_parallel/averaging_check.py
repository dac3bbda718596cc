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
    """Some elements of the gradient, before and after the ranks average it.

    Args:
        parameters: Where to look: two at most.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        self._num_each = NUM_ELEMENTS // len(parameters)
        self._before: dict[int, Tensor] = {}

    def see(self, number: int, parameter: Tensor) -> None:
        """Remember elements before they are averaged: a hook that runs when a gradient has been accumulated."""
        elements = self._elements(parameter)
        if elements is not None:
            self._before[number] = elements

    def values(self) -> Tensor | None:
        """Before, its magnitude, and after, fp64 [3 E], to be summed over ranks; None where not all was seen."""
        before = [self._before.get(number) for number in range(len(self.parameters))]
        after = [self._elements(parameter) for parameter in self.parameters]
        self._before = {}
        seen = [elements for elements in (*before, *after) if elements is not None]
        if len(seen) < 2 * len(self.parameters):
            return None
        before_E, after_E = (padded(part) for part in (seen[: len(before)], seen[len(before) :]))
        return torch.cat([before_E, before_E.abs(), after_E])

    def _elements(self, parameter: Tensor) -> Tensor | None:
        gradient = parameter.grad
        if gradient is None or gradient.layout != torch.strided:
            return None
        step = max(1, gradient.numel() // self._num_each)
        # A copy also where it is fp64 already: this memory is about to be averaged.
        return gradient.detach().reshape(-1)[::step][: self._num_each].to(torch.float64, copy=True)


def padded(elements: Sequence[Tensor]) -> Tensor:
    """All of them in a row, [E], with zeros behind."""
    found = torch.cat(list(elements))
    return torch.nn.functional.pad(found, (0, NUM_ELEMENTS - found.numel()))


def chosen(parameters: Sequence[Tensor]) -> list[Tensor]:
    """The last parameter, and the last matrix: hooks that approximate leave vectors as they are."""
    matrices = [parameter for parameter in parameters if parameter.dim() > 1]
    return [parameters[-1]] if not matrices or matrices[-1] is parameters[-1] else [matrices[-1], parameters[-1]]


def is_average(summed: Sequence[float]) -> bool:
    """Whether the gradient afterwards is the mean over ranks, as far as it could be seen.

    Args:
        summed: `AveragingCheck.values()` summed over ranks; not finite where some rank saw nothing.
    """
    before, magnitude, after = (summed[i : i + NUM_ELEMENTS] for i in range(0, NUM_VALUES, NUM_ELEMENTS))
    return not any(abs(b - a) > TOLERANCE * m for b, m, a in zip(before, magnitude, after, strict=True))
