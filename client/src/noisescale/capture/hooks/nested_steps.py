"""An optimizer whose `step` calls that of the class it is made from: torch calls its hooks at both, of one update."""

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

_CALLS_HOOKS = torch.optim.Optimizer.profile_hook_step(lambda *_: None).__code__
"""Of the function that torch puts around the `step` of each class, to call the hooks."""

StepHook = Callable[..., Any]


def once_an_update(optimizer: torch.optim.Optimizer, hook: StepHook) -> StepHook:
    """The hook, called by the outermost `step` alone.

    Args:
        optimizer: Whose hook it is.
        hook: Of its steps, before or after them.
    """
    steps = [one for one in type(optimizer).__mro__ if "step" in vars(one) and one is not torch.optim.Optimizer]
    return hook if len(steps) < 2 else functools.partial(_call_outermost, hook)


def _call_outermost(hook: StepHook, optimizer: torch.optim.Optimizer, *given: Any) -> Any:
    # The stack, and not a counter: a step that ended in an error would have left one where it stood.
    if not torch.compiler.is_compiling() and _is_inside_another(optimizer):
        return None
    return hook(optimizer, *given)


def _is_inside_another(optimizer: torch.optim.Optimizer) -> bool:
    frame: FrameType | None = sys._getframe(1)
    num_steps = 0
    while frame is not None and num_steps < 2:
        if frame.f_code is _CALLS_HOOKS:
            # a torch that calls them otherwise must not break the training: then both steps count, as without this
            num_steps += any(one is optimizer for one in frame.f_locals.get("args", ()))
        frame = frame.f_back
    return num_steps == 2
