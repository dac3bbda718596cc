"""Tells whether the gradients are still what the last backward left behind."""

from collections.abc import Sequence

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
        self._parameter: Tensor | None = None
        self._version = 0

    def remember(self) -> None:
        """Take the gradients for what they are now, after a backward."""
        if self._parameter is None:
            self._parameter = next((p for p in self._parameters if p.grad is not None), None)
        if self._parameter is not None and self._parameter.grad is not None:
            self._version = self._parameter.grad._version

    @property
    def is_cleared(self) -> bool:
        """Whether the gradients were set to None."""
        return self._parameter is not None and self._parameter.grad is None

    @property
    def is_changed(self) -> bool:
        """Whether the gradients were changed in place, also to zero."""
        gradient = None if self._parameter is None else self._parameter.grad
        return gradient is not None and gradient._version != self._version
