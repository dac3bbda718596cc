"""The factor that a loss scaler puts on all gradients of a step."""

from typing import Any

import torch
from torch import Tensor


class LossScale:
    """Reads a `GradScaler` without waiting for the device.

    Args:
        scaler: None: gradients are not scaled.
        optimizer: The scaler keeps for each optimizer whether it was unscaled.
    """

    def __init__(self, scaler: torch.amp.GradScaler | None, optimizer: torch.optim.Optimizer | None) -> None:
        self._scaler = scaler
        self._optimizer = optimizer

    def now(self) -> Tensor | None:
        """The scale as a vector of one fp64 number, where there is one."""
        if self._scaler is None or not self._scaler.is_enabled():
            return None
        # The public get_scale() waits for the device.
        scale: Tensor | None = self._scaler._scale
        return None if scale is None else scale.detach().double().reshape(1)

    def is_undone(self) -> bool:
        """Whether the step's gradients carry no scale: there is none, or `unscale_()` has been called."""
        if self._scaler is None or not self._scaler.is_enabled():
            return True
        # Only looked at: asking the scaler itself would open an entry for the optimizer.
        state: Any = self._scaler._per_optimizer_states.get(id(self._optimizer))
        return state is not None and state["stage"].name != "READY"
