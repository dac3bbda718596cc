"""A backward that runs, and whether it changes the gradients."""

from typing import NamedTuple

from torch import Tensor


class RunningBackward(NamedTuple):
    """The parameter that a backward has reached first, and its gradient before.

    Attributes:
        parameter: It.
        gradient: What was in `p.grad`.
        version: How often that had been changed.
    """

    parameter: Tensor
    gradient: Tensor | None
    version: int

    @classmethod
    def at(cls, parameter: Tensor) -> "RunningBackward":
        """The backward that has reached this parameter, and has not added to its `p.grad` yet."""
        gradient = parameter.grad
        return cls(parameter, gradient, 0 if gradient is None else gradient._version)

    def has_moved(self) -> bool:
        """Whether it has changed `p.grad` by now; `torch.autograd.grad` leaves it as it is."""
        gradient = self.parameter.grad
        return gradient is not self.gradient or (gradient is not None and gradient._version != self.version)
