"""Updates that are a line in the gradient: u = -rate · (past + weight · g) / divisor, of each parameter.

The past and the divisor are as the optimizer's state holds them before the step, so that the noise of the step's
gradient is in neither. Adam's own divisor holds that gradient, too, with weight 1 - β₂, and 1/t in the first steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

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
    def has_root(self) -> bool:
        """Whether every coordinate is divided by a root of its own."""
        return not self._is_sgd

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

    def of_all(self, parameters: Sequence[Tensor], groups: Sequence[Mapping[str, Any]]) -> list[Affine | None]:
        """`of` each; where steps are counted on a device, in a few launches for all of them.

        Args:
            parameters: That have gradients.
            groups: That hold them.
        """
        states = [self._optimizer.state.get(parameter) or {} for parameter in parameters]
        steps: list[Tensor] = [step for state in states if _is_on_device(step := state.get("step"))]
        is_one = len(steps) == len(parameters) and len({step.device for step in steps}) == 1
        if self._is_sgd or not is_one or any(_is_on_device(beta) for group in groups for beta in group["betas"]):
            return [self.of(parameter, group) for parameter, group in zip(parameters, groups, strict=True)]
        step_P = torch.stack([step.reshape(()) for step in steps]).double()
        of_betas = {betas: _numbers_of(step_P, *betas) for betas in {_betas(group) for group in groups}}
        found: list[Affine | None] = []
        for index, (parameter, state, group) in enumerate(zip(parameters, states, groups, strict=True)):
            numbers = _AdamNumbers(*(column[index] for column in of_betas[_betas(group)]))
            found.append(self._adam_update(parameter, state, group, numbers, steps[index]))
        return found

    def _adam(self, parameter: Tensor, state: Mapping[str, Any], group: Mapping[str, Any]) -> Affine | None:
        step = state.get("step")
        if step is None:
            return None
        on_device = _is_on_device(step)
        if not on_device and float(step) < MIN_STEPS:
            return None
        beta1 = float(group["betas"][0])
        correction = 1 - beta1 ** (step.double() + 1 if on_device else float(step) + 1)
        numbers = _AdamNumbers(beta1 / correction, (1 - beta1) / correction, bias_correction(state, group) ** -0.5)
        return self._adam_update(parameter, state, group, numbers, step if on_device else None)

    def _adam_update(
        self,
        parameter: Tensor,
        state: Mapping[str, Any],
        group: Mapping[str, Any],
        numbers: "_AdamNumbers",
        step: Tensor | None,
    ) -> Affine:
        """Source: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1; its bias corrections at the step that comes."""
        past: list[tuple[Number, Tensor]] = [(numbers.past, state["exp_avg"])]
        if group["weight_decay"] and not has_decoupled_decay(self._optimizer, group):
            past.append((numbers.weight * float(group["weight_decay"]), parameter))
        second_moment = state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"]
        return Affine(past, numbers.weight, Root(second_moment, numbers.scale, float(group["eps"])), step)


class _AdamNumbers(NamedTuple):
    """What Adam multiplies with: its average of gradients, the gradient, and √v."""

    past: Number
    weight: Number
    scale: Number


def _numbers_of(step_P: Tensor, beta1: float, beta2: float) -> list[tuple[Tensor, ...]]:
    """Of each parameter: what `_AdamNumbers` holds, as columns."""
    correction_P = 1 - beta1 ** (step_P + 1)
    columns = beta1 / correction_P, (1 - beta1) / correction_P, (1 - beta2**step_P).rsqrt()
    return [column.unbind() for column in columns]


def _betas(group: Mapping[str, Any]) -> tuple[float, float]:
    beta1, beta2 = group["betas"]
    return float(beta1), float(beta2)


def _is_on_device(value: object) -> TypeGuard[Tensor]:
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
