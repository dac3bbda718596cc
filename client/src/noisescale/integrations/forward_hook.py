"""A hook on a model's training forwards that stays behind when the model is saved or copied."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

See = Callable[[Sequence[Any], Mapping[str, Any], Any], None]


class ForwardHook:
    """Sees inputs and output of the forwards that a backward may follow.

    Pickled or deep-copied with its model it becomes a function of the standard library that does nothing.

    Args:
        model: The module itself; copies of it are not seen.
        see: Told arguments, keyword arguments and output. Must not raise.
    """

    def __init__(self, model: nn.Module, see: See) -> None:
        self._model = model
        self._see = see

    def __call__(self, module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], output: object) -> None:
        """Pass a training forward on."""
        if module is self._model and module.training and torch.is_grad_enabled():
            self._see(args, kwargs, output)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def output_tensors(output: object) -> dict[str, Tensor]:
    """The tensors of a model's output that a backward can start from, by name where they have one.

    Args:
        output: A tensor, a tuple of tensors, or anything with `items()`.
    """
    if isinstance(output, Tensor):
        named: dict[str, object] = {"0": output}
    elif isinstance(output, Mapping):
        named = dict(output)
    elif isinstance(output, list | tuple):
        named = {str(index): item for index, item in enumerate(output)}
    else:
        named = {}
    return {name: item for name, item in named.items() if isinstance(item, Tensor) and item.requires_grad}
