"""Calls at the end of a backward pass that is not one's own to write a line after.

`Trainer` clips gradients between its last backward and the first callback that it calls, so that callback comes too
late for |ḡ|².
"""

from collections.abc import Callable
from functools import partial

import torch

_queue_callback: Callable[[Callable[[], None]], None] | None = getattr(
    torch.autograd.Variable._execution_engine, "queue_callback", None
)
"""A private name of torch, but the one that its own data-parallel code rests on."""

ROUNDS = 4
"""How often a call queues itself again: behind DistributedDataParallel and FSDP, which write gradients in the first
round, and behind the capture, which closes the small batch in the first and looks at the gradients in the second."""


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
