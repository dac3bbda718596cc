"""The state of a PyTorch training, put back bit for bit: tensors in place, so that whoever holds them still does."""

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor


class Stateful(Protocol):
    """A learning-rate schedule, a GradScaler, a data loader that can be resumed."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Take a state."""
        ...


class TorchSnapshot:
    """Parameters, buffers, gradients, modes, the optimizer and whatever else has a state_dict, at one moment.

    Not `state_dict()` of model and optimizer: it leaves out buffers that are not persistent and gradients, and loading
    an optimizer's rounds its state to the parameters' type.

    Args:
        model: All that is trained.
        optimizer: Its state and its groups' settings.
        others: Further objects with a state_dict.
        path: File for the tensors, removed by `forget()`; None: they stay in memory, on their devices.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        others: Sequence[Stateful] = (),
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._model, self._optimizer, self._others = model, optimizer, tuple(others)
        self._path = None if path is None else Path(path)
        self._modes = [module.training for module in model.modules()]
        self._groups = [
            copy.deepcopy({name: value for name, value in group.items() if name != "params"})
            for group in optimizer.param_groups
        ]
        self._other_states = [copy.deepcopy(other.state_dict()) for other in self._others]
        self._tensors: dict[str, Any] | None = {
            "values": [tensor.detach().clone() for tensor in self._all_tensors()],
            "gradients": [_cloned(parameter.grad) for parameter in self._parameters()],
            "optimizer": [
                {name: _cloned(value) for name, value in optimizer.state.get(parameter, {}).items()}
                for parameter in self._parameters()
            ],
            "has_state": [parameter in optimizer.state for parameter in self._parameters()],
        }
        if self._path is not None:
            torch.save(self._tensors, self._path)
            self._tensors = None

    def restore(self) -> None:
        """Put everything back as it was; as often as wanted."""
        saved = self._tensors if self._path is None else torch.load(self._path, weights_only=True)
        assert saved is not None
        with torch.no_grad():
            for tensor, value in zip(self._all_tensors(), saved["values"], strict=True):
                tensor.copy_(value)
        for parameter, gradient in zip(self._parameters(), saved["gradients"], strict=True):
            parameter.grad = _cloned(gradient)
        self._restore_optimizer(saved)
        for module, is_training in zip(self._model.modules(), self._modes, strict=True):
            module.training = is_training
        for other, state in zip(self._others, self._other_states, strict=True):
            other.load_state_dict(copy.deepcopy(state))

    def forget(self) -> None:
        """Remove the file, where there is one."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _restore_optimizer(self, saved: dict[str, Any]) -> None:
        state = self._optimizer.state
        for parameter, values, had_state in zip(
            self._parameters(), saved["optimizer"], saved["has_state"], strict=True
        ):
            state.pop(parameter, None)
            if had_state:
                state[parameter] = {name: _cloned(value) for name, value in values.items()}
        for group, settings in zip(self._optimizer.param_groups, self._groups, strict=True):
            for name in set(group) - set(settings) - {"params"}:
                del group[name]
            group.update(copy.deepcopy(settings))

    def _parameters(self) -> list[torch.nn.Parameter]:
        """Of the model, then those that only the optimizer holds."""
        own = list(self._model.parameters())
        known = set(map(id, own))
        held = [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
        return own + [parameter for parameter in held if id(parameter) not in known]

    def _all_tensors(self) -> list[Tensor]:
        return [*self._parameters(), *self._model.buffers()]


def _cloned(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)
