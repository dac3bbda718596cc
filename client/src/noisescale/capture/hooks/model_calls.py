"""Shows the inputs and outputs of a model's calls, also of one that was compiled in place."""

from collections.abc import Callable
from typing import Any

from torch import nn

from noisescale.capture.data_parallel.job import RemovableHandle

SeeInputs = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]
SeeOutput = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], None]


def see_calls(model: nn.Module, see: SeeInputs, see_output: SeeOutput | None = None) -> RemovableHandle:
    """Show a model's inputs before each call, and both after it, until the handle is removed.

    Args:
        model: As it is called.
        see: A forward pre-hook.
        see_output: A forward hook with keywords; None: nobody asks for the output.
    """
    # A private name of torch, None unless `model.compile()` was called; hooks are compiled into what it holds.
    compiled = model.__dict__.get("_compiled_call_impl")
    if compiled is not None:
        return _InFront(model, see, see_output, compiled)
    handles = [model.register_forward_pre_hook(see, with_kwargs=True)]
    if see_output is not None:
        handles.append(model.register_forward_hook(see_output, with_kwargs=True))
    return _Handles(handles)


class _Handles:
    """Several handles as one."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove them all."""
        for handle in self._handles:
            handle.remove()


class _InFront:
    """Stands in for what `model.compile()` has made of the model's call. Neither pickled nor copied with the model."""

    def __init__(
        self, model: nn.Module, see: SeeInputs, see_output: SeeOutput | None, compiled: Callable[..., Any]
    ) -> None:
        self._model = model
        self._see = see
        self._see_output = see_output
        self._compiled = compiled
        model._compiled_call_impl = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._see(self._model, args, kwargs)
        output = self._compiled(*args, **kwargs)
        if self._see_output is not None:
            self._see_output(self._model, args, kwargs, output)
        return output

    def remove(self) -> None:
        """Put back what was there, unless the model was compiled once more since."""
        if self._model.__dict__.get("_compiled_call_impl") is self:
            self._model._compiled_call_impl = self._compiled
