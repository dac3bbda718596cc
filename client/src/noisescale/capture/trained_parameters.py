"""Whether an optimizer trains the parameters that it trained when they were looked up, or others by now.

Layers are unfrozen in stages, and given to the optimizer later (`add_param_group`). What is measured has to follow, or
the numbers are those of a part of the model, and look like any others.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

LOOK_EVERY = 8
"""Measured steps between two looks: one at 1,000 parameters takes 40 µs."""


class TrainedParameters:
    """The number of parameters that require a gradient and that the optimizer holds.

    Args:
        model: Whose they are.
        optimizer: None: all of the model's.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        self._model = model
        self._optimizer = optimizer
        self._number = self._count()
        self._num_asked = 0

    def have_changed(self) -> bool:
        """True once after a change, when asked after each step at most 8 steps later."""
        self._num_asked += 1
        if self._num_asked % LOOK_EVERY:
            return False
        before, self._number = self._number, self._count()
        return self._number not in (before, 0)

    def _count(self) -> int:
        return sum([parameter.requires_grad for parameter in self._held()])

    def _held(self) -> Iterable[Tensor]:
        if self._optimizer is None:
            return self._model.parameters()
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
