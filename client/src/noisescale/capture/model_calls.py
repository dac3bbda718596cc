"""Shows the inputs of a model's calls, also of one that was compiled in place."""

from collections.abc import Callable
from typing import Any

from torch import nn

from noisescale.capture.data_parallel.job import RemovableHandle

SeeInputs = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]


def see_calls(model: nn.Module, see: SeeInputs) -> RemovableHandle:
    """Show a model's inputs before each call, until the handle is removed.

    Args:
        model: As it is called.
        see: A forward pre-hook.
    """
    # A private name of torch, None unless `model.compile()` was called; hooks are compiled into what it holds.
    compiled = model.__dict__.get("_compiled_call_impl")
    if compiled is None:
        return model.register_forward_pre_hook(see, with_kwargs=True)
    return _InFront(model, see, compiled)


class _InFront:
    """Stands in for what `model.compile()` has made of the model's call. Neither pickled nor copied with the model."""

    def __init__(self, model: nn.Module, see: SeeInputs, compiled: Callable[..., Any]) -> None:
        self._model = model
        self._see = see
        self._compiled = compiled
        model._compiled_call_impl = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._see(self._model, args, kwargs)
        return self._compiled(*args, **kwargs)

    def remove(self) -> None:
        """Put back what was there, unless the model was compiled once more since."""
        if self._model.__dict__.get("_compiled_call_impl") is self:
            self._model._compiled_call_impl = self._compiled
