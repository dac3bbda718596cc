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
        self._index: int | None = None
        self._version = 0

    def remember(self) -> None:
        """Take the gradients for what they are now, after a backward."""
        if self._index is None:
            self._index = next((i for i, p in enumerate(self._parameters) if p.grad is not None), None)
        gradient = self._now()
        if gradient is not None:
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
