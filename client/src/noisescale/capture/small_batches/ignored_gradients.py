"""What backward passes inside `ignore()` have added to `p.grad`: to be taken off it again where it is read."""

from collections.abc import Sequence

from torch import Tensor


class IgnoredGradients:
    """Sums of gradients by the index of their parameter.

    Attributes:
        sums: What is part of `p.grad` now.
    """

    def __init__(self) -> None:
        self.sums: dict[int, Tensor] = {}
        self._now: dict[int, Tensor] = {}

    def see(self, index: int, gradient: Tensor) -> None:
        """Take a gradient of the backward that runs; autograd adds it to `p.grad` behind."""
        self._now[index] = gradient.detach().clone()

    def keep(self) -> None:
        """The backward has ended, and added what was seen."""
        for index, gradient in self._now.items():
            self.sums[index] = self.sums[index] + gradient if index in self.sums else gradient
        self._now = {}

    def drop(self) -> None:
        """The backward has ended, and added nothing."""
        self._now = {}

    def forget(self, index: int) -> None:
        """The gradient of this parameter was cleared."""
        self.sums.pop(index, None)

    def taken_off(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients without what was ignored."""
        found = list(gradients)
        for index, ignored in self.sums.items():
            gradient = found[index]
            found[index] = None if gradient is None else gradient - ignored
        return found
