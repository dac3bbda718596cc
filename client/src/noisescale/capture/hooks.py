"""The only file that registers hooks: on parameters, on the watched model and on its optimizer.

One of the client's three `except Exception` is here: a fault of ours inside a hook is reported, never raised into the
backward pass.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from noisescale.capture.accumulation import Accumulation

NO_BACKWARD = -1
"""What torch calls the backward that runs while none does."""

OnFault = Callable[[Exception], None]


class RemovableHandle(Protocol):
    """What PyTorch returns for a hook."""

    def remove(self) -> None:
        """Take the hook off."""


class Optimizer(Protocol):
    """What this file needs of `torch.optim.Optimizer`."""

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call the hook after each `step()`."""


class Hooks:
    """Hooks that tell an `Accumulation` what happens, until they are removed."""

    def __init__(
        self,
        model: nn.Module,
        parameters: Sequence[Tensor],
        optimizer: Optimizer | None,
        accumulation: Accumulation,
        *,
        on_step: Callable[[], None],
        on_fault: OnFault,
    ) -> None:
        self._accumulation = accumulation
        self._on_fault = on_fault
        self._on_step = on_step
        # Private names of torch, but the ones that its own data-parallel code rests on; without them see `_see`.
        self._queue_callback = getattr(torch.autograd.Variable._execution_engine, "queue_callback", None)
        self._graph_task_id = getattr(torch._C, "_current_graph_task_id", lambda: NO_BACKWARD)
        self._open_backwards: set[int] = set()
        self._remember_gradient = self._guarded(accumulation.remember_gradient)
        self._handles: list[RemovableHandle] = [
            parameter.register_hook(self._guarded(self._leaf_hook(index))) for index, parameter in enumerate(parameters)
        ]
        forward_hook = ForwardHook(model, self._guarded(self._forward))
        self._handles.append(model.register_forward_pre_hook(forward_hook, with_kwargs=True))
        if optimizer is not None:
            self._handles.append(optimizer.register_step_post_hook(self._guarded(self._step)))

    def remove(self) -> None:
        """Take every hook off; nothing of ours stays on model or optimizer."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def settle(self) -> None:
        """Close what a backward left open: one without an end-of-backward callback, or one that failed half-way."""
        if self._open_backwards:
            self._open_backwards.clear()
            self._accumulation.pending.clear()
        elif self._queue_callback is None:
            self._accumulation.end_backward()
            self._accumulation.remember_gradient()

    def _guarded(self, body: Callable[..., None]) -> Callable[..., None]:
        def hook(*args: Any) -> None:
            try:
                body(*args)
            except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
                self._on_fault(fault)

        return hook

    def _leaf_hook(self, index: int) -> Callable[[Tensor], None]:
        see_gradient, open_backwards, graph_task_id = (
            self._accumulation.see_gradient,
            self._open_backwards,
            self._graph_task_id,
        )
        if self._queue_callback is None:
            return lambda gradient: self._see_without_callback(index, gradient)

        def see(gradient: Tensor) -> None:
            task = graph_task_id()
            if task not in open_backwards:
                self._open_backward(task)
            see_gradient(index, gradient)

        return see

    def _open_backward(self, task: int) -> None:
        assert self._queue_callback is not None
        if not self._open_backwards:
            self._accumulation.begin_backward()
        self._queue_callback(self._guarded(lambda: self._close_backward(task)))
        self._open_backwards.add(task)

    def _close_backward(self, task: int) -> None:
        self._open_backwards.discard(task)
        # Reentrant checkpointing nests backward passes: only the outermost ends the small batch.
        if not self._open_backwards:
            self._accumulation.end_backward()
            assert self._queue_callback is not None
            # Behind the callbacks of others: DistributedDataParallel writes the gradients once more in its own.
            self._queue_callback(self._remember_gradient)

    def _see_without_callback(self, index: int, gradient: Tensor) -> None:
        if self._accumulation.pending.holds(index):
            self._accumulation.end_backward()
            self._accumulation.remember_gradient()
        if self._accumulation.pending.is_empty:
            self._accumulation.begin_backward()
        self._accumulation.see_gradient(index, gradient)

    def _forward(self, num_examples: float | None, is_training: bool) -> None:
        if self._graph_task_id() != NO_BACKWARD:
            return  # checkpointing runs the forward again, inside the backward
        self.settle()
        self._accumulation.see_forward(num_examples, is_training=is_training)

    def _step(self, *_: Any) -> None:
        self._open_backwards.clear()
        self._on_step()


class ForwardHook:
    """Reads the number of examples from the model's input.

    It lives in the user's module, so it must not come along: pickled or deep-copied, it becomes a standard-library
    function that does nothing, and a saved model loads where this package is not installed.
    """

    def __init__(self, model: nn.Module, see: Callable[[float | None, bool], None]) -> None:
        self._model = model
        self._see = see

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count a forward that will be followed by a backward."""
        # While torch.compile traces, the hook must be empty: a counter would make it compile again at each step.
        if torch.compiler.is_compiling() or module is not self._model or not torch.is_grad_enabled():
            return
        self._see(leading_dimension([*args, *kwargs.values()]), module.training)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def leading_dimension(arguments: Sequence[object]) -> float | None:
    """Length of the first dimension of the first tensor, looked for one level deep; None where there is none."""
    for argument in arguments:
        for candidate in _tensors_in(argument):
            if candidate.dim():
                return candidate.shape[0]
    return None


def _tensors_in(argument: object) -> list[Tensor]:
    inner: Sequence[object] = [argument]
    if isinstance(argument, Mapping):
        inner = list(argument.values())
    elif isinstance(argument, list | tuple):
        inner = argument
    return [item for item in inner if isinstance(item, Tensor)]
