"""Updates that are a line in the gradient: u = -rate · (past + weight · g) / divisor, of each parameter.

The past and the divisor are as the optimizer's state holds them before the step, so that the noise of the step's
gradient is in neither. Adam's own divisor holds that gradient, too, with weight 1 - β₂, and 1/t in the first steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from noisescale.capture.kinds.adam import MIN_STEPS
from noisescale.capture.kinds.preconditioner import bias_correction, unwrapped
from noisescale.capture.path.optimizer_facts import has_decoupled_decay, rate_of

Number = float | Tensor
"""A tensor where the optimizer counts its steps on a device, which nobody may wait for."""

KNOWN = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
"""And no class made from them: its step may be another."""


class Root(NamedTuple):
    """A divisor √v · scale + ε; coordinates with v = 0 are left out, as Adam would divide their first gradient by ε.

    Attributes:
        second_moment: v.
        scale: 1 / √(1 - β₂ᵗ).
        eps: ε.
    """

    second_moment: Tensor
    scale: Number
    eps: float


class Affine(NamedTuple):
    """How one parameter is updated.

    Attributes:
        past: What does not depend on the gradient, as (factor, tensor) whose products add up.
        weight: Of the gradient.
        root: The divisor; None: 1.
        steps: That the divisor rests on, where only the device knows; None where they are enough.
    """

    past: Sequence[tuple[Number, Tensor]]
    weight: Number
    root: Root | None = None
    steps: Tensor | None = None


class AffineUpdates:
    """Of one optimizer.

    Args:
        optimizer: One that `is_known`, or a wrapper of one.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._given, self._optimizer = optimizer, unwrapped(optimizer)
        self._is_sgd = type(self._optimizer) is torch.optim.SGD

    @staticmethod
    def is_known(optimizer: torch.optim.Optimizer) -> bool:
        """Whether updates of this optimizer are such lines: SGD, Adam and AdamW of `torch.optim`."""
        return type(unwrapped(optimizer)) in KNOWN

    @property
    def groups(self) -> Sequence[dict[str, Any]]:
        """Of the optimizer's parameters."""
        return self._optimizer.param_groups

    def rates(self) -> list[float] | None:
        """Of each group; None where one is 0, a number is on a device, or the loss is one to be raised."""
        if any(group.get("maximize") or any(map(_is_on_device, group.values())) for group in self.groups):
            return None
        rates = [rate_of(group) or 0.0 for group in self.groups]
        return rates if all(rate > 0 for rate in rates) else None

    @property
    def scales_gradients_itself(self) -> bool:
        """Whether a loss scaler leaves it to the optimizer to take its scale off the gradients, or to skip the step."""
        return any(getattr(one, "grad_scale", None) is not None for one in (self._given, self._optimizer))

    def settings(self) -> tuple[object, ...]:
        """What the metric of a step depends on besides the optimizer's state: it must not change within the step."""
        rates = self.rates()
        relative = None if rates is None else [round(rate / rates[0], 9) for rate in rates]
        names = ("betas", "eps", "momentum", "dampening", "nesterov", "amsgrad")
        return relative, [[group.get(name) for name in names] for group in self.groups]

    def of(self, parameter: Tensor, group: Mapping[str, Any]) -> Affine | None:
        """How a parameter will be updated; None where its state says too little yet.

        Args:
            parameter: That has a gradient.
            group: That holds it.
        """
        state = self._optimizer.state.get(parameter) or {}
        return _sgd(parameter, state, group) if self._is_sgd else self._adam(parameter, state, group)

    def _adam(self, parameter: Tensor, state: Mapping[str, Any], group: Mapping[str, Any]) -> Affine | None:
        """Source: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1; its bias corrections at the step that comes."""
        step = state.get("step")
        if step is None:
            return None
        on_device = isinstance(step, Tensor) and not step.is_cpu
        if not on_device and float(step) < MIN_STEPS:
            return None
        beta1 = float(group["betas"][0])
        following: Number = step.double() + 1 if on_device else float(step) + 1
        correction = 1 - beta1**following
        weight = (1 - beta1) / correction
        past: list[tuple[Number, Tensor]] = [(beta1 / correction, state["exp_avg"])]
        if group["weight_decay"] and not has_decoupled_decay(self._optimizer, group):
            past.append((weight * float(group["weight_decay"]), parameter))
        second_moment = state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"]
        root = Root(second_moment, bias_correction(state, group) ** -0.5, float(group["eps"]))
        return Affine(past, weight, root, step if on_device else None)


def _is_on_device(value: object) -> bool:
    return isinstance(value, Tensor) and not value.is_cpu


def _sgd(parameter: Tensor, state: Mapping[str, Any], group: Mapping[str, Any]) -> Affine:
    """Source: the update of `torch.optim.SGD`; its first step with momentum knows no dampening."""
    momentum, buffer = float(group["momentum"]), state.get("momentum_buffer")
    past: list[tuple[Number, Tensor]] = []
    weight = 1.0
    if momentum:
        kept = 1.0 if buffer is None else 1 - float(group["dampening"])
        weight = 1 + momentum * kept if group["nesterov"] else kept
        if buffer is not None:
            past.append((momentum * momentum if group["nesterov"] else momentum, buffer))
    if group["weight_decay"]:
        past.append((weight * float(group["weight_decay"]), parameter))
    return Affine(past, weight)
