"""Tells whether the gradients are still what the last backward left behind."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class Witness:
    """One parameter that stands for all: who clears, clips, unscales or averages gradients does so with every one.

    It compares the counter that torch raises at each change in place, so it never waits for the device.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self.forget()

    def forget(self) -> None:
        """Nothing is known: nothing counts as changed."""
        self._index: int | None = None
        self._gradient: Tensor | None = None
        self._version = 0

    def remember(self) -> None:
        """Take the gradients for what they are now, after a backward."""
        if self._index is None:
            self._index = next((i for i, p in enumerate(self._parameters) if p.grad is not None), None)
        gradient = self._now()
        if gradient is not None:
            self._gradient = gradient
            self._version = gradient._version

    def _now(self) -> Tensor | None:
        return None if self._index is None else self._parameters[self._index].grad

    @property
    def is_cleared(self) -> bool:
        """Whether the gradients were set to None."""
        return self._index is not None and self._parameters[self._index].grad is None

    @property
    def is_changed(self) -> bool:
        """Whether the gradients were changed in place, also to zero."""
        gradient = self._now()
        return gradient is not None and gradient._version != self._version

    def has_grown_by(self, num_passes: int, gradients: Sequence[Tensor | None]) -> bool:
        """Whether nothing but these backward passes has changed the gradients since they were remembered.

        Args:
            num_passes: Backward passes since.
            gradients: Of the last of them, one entry a parameter.
        """
        gradient = self._now()
        if self._index is None or gradient is None:
            return self._index is None
        if gradient is not self._gradient:
            return False
        return gradient._version == self._version + num_passes * (gradients[self._index] is not None)

    def equals(self, total: Callable[[int], Tensor | None]) -> bool:
        """Whether the gradients are this sum, to rounding; compares values, so it waits for a device.

        Args:
            total: From a parameter's index to the sum of its gradients.
        """
        gradient = self._now()
        summed = None if self._index is None else total(self._index)
        return gradient is not None and summed is not None and torch.allclose(gradient, summed.to_dense(), rtol=1e-4)

    def is_only(self, gradients: Sequence[Tensor | None]) -> bool:
        """Whether the gradients were cleared before the last backward pass, and are its own alone.

        Compares values, so it waits for a device.
        """
        gradient = self._now()
        last = None if self._index is None else gradients[self._index]
        return gradient is not None and last is not None and torch.equal(gradient, last.to_dense())
