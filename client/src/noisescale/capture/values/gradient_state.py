"""What is known about a step's gradients when it is logged."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from noisescale.capture.step import Gathered
from noisescale.capture.sums.step_norms import Weighting
from noisescale.capture.watch_options import WatchOptions

# The factor that a loss scaler puts on all gradients of a step.


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


@dataclass(frozen=True, slots=True)
class GradientState:
    """Facts about the gradients of a step.

    Attributes:
        adds_up: The gradient is the sum of the small batches.
        is_partial: Some parameters had a gradient in some small batches only.
        is_summed_loss: The loss is a sum over the examples.
        is_unscaled: A loss scaler has already divided the step's gradient by its scale.
        weighting: How the loop weighs its small batches.
        is_coupled: A BatchNorm was in training mode.
        is_proxy: Only the normalisations were measured.
        reason: Why a backward could not be taken apart.
    """

    adds_up: bool = True
    is_partial: bool = False
    is_summed_loss: bool = False
    is_unscaled: bool = False
    weighting: Weighting = "by_size"
    is_coupled: bool = False
    is_proxy: bool = False
    reason: str | None = None


class GradientStates:
    """The state of each step; one object as long as nothing changes, as most steps are like the one before."""

    def __init__(self, options: WatchOptions) -> None:
        self._options = options
        self._varying: tuple[object, ...] = ()
        self._last = GradientState()

    def of_step(self, gathered: Gathered, *, is_unscaled: bool, are_coupled: bool, estimator: str) -> GradientState:
        """The state of the step that is logged."""
        reason, is_partial = gathered.reason, gathered.is_partial
        varying = gathered.adds_up, is_partial, is_unscaled, are_coupled, reason, estimator
        if varying != self._varying:
            self._varying = varying
            self._last = GradientState(
                adds_up=gathered.adds_up,
                is_partial=is_partial,
                is_summed_loss=self._options.loss_reduction == "sum",
                is_unscaled=is_unscaled,
                weighting=self._options.weighting,
                is_coupled=are_coupled,
                is_proxy=estimator == "layer_norm_proxy",
                reason=reason,
            )
        return self._last
