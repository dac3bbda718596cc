"""Clipping by a norm that was measured anyway."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from noisescale.capture.watch import Watch


def clip_grad_norm_(watch: Watch[Any] | None, max_norm: float, parameters: Sequence[Tensor] | None) -> Tensor:
    """Clip as `torch.nn.utils.clip_grad_norm_` does, with the norm of the watch's current step if it has one.

    Args:
        watch: None: only torch's own norm.
        max_norm: Largest norm afterwards.
        parameters: None: those watched.
    """
    clipped = parameters if parameters is not None else [] if watch is None else watch.parameters
    norm = None if watch is None else watch.measured_norm(parameters)
    if norm is None:
        return torch.nn.utils.clip_grad_norm_(clipped, max_norm)
    torch.nn.utils.clip_grads_with_norm_(clipped, max_norm, norm)
    return norm
