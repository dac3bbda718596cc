"""Tells whether the gradients are still what the last backward left behind."""

from collections.abc import Sequence

import torch
from torch import Tensor

NUM_KEPT = 1024
"""Elements of a gradient that are kept to compare with."""


class Witness:
    """One parameter that stands for all: who clears, clips, unscales or averages gradients does so with every one.

    It compares the counter that torch raises at each change in place, so it never waits for the device. A loss scaler's
    `unscale_()` does not raise it: for that the values of a small gradient are kept, and compared on the device.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._smallest_first = sorted(range(len(parameters)), key=lambda index: parameters[index].numel())
        self.forget()

    def forget(self) -> None:
        """Forget the values, so that none counts as changed."""
        self._index: int | None = None
        self._version = 0
        self._kept: tuple[int, Tensor] | None = None

    def remember(self) -> None:
        """Take the gradients for what they are now, after a backward."""
        if self._index is None:
            self._index = next((i for i, p in enumerate(self._parameters) if p.grad is not None), None)
        gradient = self._now()
        if gradient is not None:
            self._version = gradient._version
        self._kept = None
        for index in self._smallest_first:
            if (values := _first_values(self._parameters[index].grad)) is not None:
                self._kept = index, values.clone()
                break

    def has_other_values(self) -> Tensor | None:
        """1 where the values differ from those remembered, else 0: one fp64 number on the device; None: not known."""
        if self._kept is None:
            return None
        index, before = self._kept
        values = _first_values(self._parameters[index].grad)
        if values is None or values.shape != before.shape:
            return None
        # NaN differs from itself, and is reported as what it is
        return ((values != before) & ~before.isnan()).any().double().reshape(1)

    def _now(self) -> Tensor | None:
        return None if self._index is None else self._parameters[self._index].grad

    def forget_values(self) -> None:
        """Somebody has changed the values in a way that is known."""
        self._kept = None

    @property
    def is_cleared(self) -> bool:
        """Whether the gradients were set to None."""
        return self._index is not None and self._parameters[self._index].grad is None

    @property
    def is_changed(self) -> bool:
        """Whether the gradients were changed in place, also to zero."""
        gradient = self._now()
        return gradient is not None and gradient._version != self._version


def _first_values(gradient: Tensor | None) -> Tensor | None:
    """The first values of a plain gradient; None of one that is sparse, spread over ranks or not there."""
    if gradient is None or type(gradient) is not Tensor or gradient.layout != torch.strided or not gradient.numel():
        return None
    return gradient.detach().reshape(-1)[:NUM_KEPT]
