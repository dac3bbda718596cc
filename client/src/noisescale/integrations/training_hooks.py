"""Hooks on a model's training forwards and on the end of backward passes that are not one's own."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

See = Callable[[Sequence[Any], Mapping[str, Any], Any], None]

_queue_callback: Callable[[Callable[[], None]], None] | None = getattr(
    torch.autograd.Variable._execution_engine, "queue_callback", None
)
"""A private name of torch, but the one that its own data-parallel code rests on."""

ROUNDS = 4
"""How often a call queues itself again: behind DistributedDataParallel and FSDP, which write gradients in the first
round, and behind the capture, which closes the small batch in the first and looks at the gradients in the second."""


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


# Calls at the end of a backward pass that is not one's own to write a line after.
#
# `Trainer` clips gradients between its last backward and the first callback that it calls, so that callback comes too
# late for |ḡ|².


def after_backward(call: Callable[[], None]) -> None:
    """Call once when the running backward ends, behind what others do there.

    Only inside a backward, so from a hook. Where torch has no such queue the call never comes.

    Args:
        call: Must not raise: it would raise out of the user's `backward()`.
    """
    _queue(call, ROUNDS)


def _queue(call: Callable[[], None], rounds: int) -> None:
    if _queue_callback is not None:
        _queue_callback(partial(_queue, call, rounds - 1) if rounds else call)
