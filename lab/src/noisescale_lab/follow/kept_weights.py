"""Weights and optimizer states of one moment, to go back to where a raise of the batch or the rate has failed.

The groups' settings stay as they are: the schedule goes on, and the rate is set by whoever decides. Every rank keeps
what it holds, a shard its own part.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


class KeptWeights:
    """A copy on the same devices.

    Args:
        optimizer: Its parameters and their states.
        model: Whose buffers go along, such as the running means of batch normalization; None: there are none.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> None:
        self._optimizer, self._model = optimizer, model
        self._values = [_clone(tensor) for tensor in self._tensors()]
        self._states = [
            None if parameter not in optimizer.state else _copies(optimizer.state[parameter])
            for parameter in self._parameters()
        ]

    @torch.no_grad()
    def put_back(self) -> None:
        """Set everything as it was, in place: whoever holds a tensor still does."""
        for tensor, value in zip(self._tensors(), self._values, strict=True):
            tensor.copy_(value)
        for parameter, kept in zip(self._parameters(), self._states, strict=True):
            if kept is None:
                self._optimizer.state.pop(parameter, None)
                continue
            own = self._optimizer.state[parameter]
            for name, value in kept.items():
                if isinstance(value, Tensor) and isinstance(own.get(name), Tensor):
                    own[name].copy_(value)
                else:
                    own[name] = _clone(value)
            for name in set(own) - set(kept):
                del own[name]

    def _parameters(self) -> Iterator[Tensor]:
        return (parameter for group in self._optimizer.param_groups for parameter in group["params"])

    def _tensors(self) -> Iterator[Tensor]:
        yield from self._parameters()
        if self._model is not None:
            yield from self._model.buffers()


def _copies(state: dict[str, Any]) -> dict[str, Any]:
    return {name: _clone(value) for name, value in state.items()}


def _clone(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)
