"""Divisors of the form √(v / c) + ε, which a kernel computes while it reads gradients and v once."""

# N parameters

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.kinds.preconditioner import Group, State, bias_correction
from noisescale.capture.sums.known_lists import list_like
from noisescale.kernels.operations import Numbers


def is_root(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an optimizer divides by such a root: Adam, AdamW, NAdam and RAdam do, Adamax does not."""
    return isinstance(optimizer, torch.optim.Adam | torch.optim.NAdam | torch.optim.RAdam)


def divided_sq_norm(
    optimizer: torch.optim.Optimizer, gradients: Sequence[Tensor], states: Sequence[tuple[State, Group]]
) -> Tensor:
    """Σ (g / (√(v / c) + ε))² over all, fp64 without dimensions; coordinates with v = 0 are left out.

    Args:
        optimizer: One that `is_root`.
        gradients: Real, all on one device.
        states: Of each parameter its state and its parameter group.

    Source: see `preconditioner.py`.
    """
    corrections = _corrections(states)
    eps: Numbers = [float(group["eps"]) for _, group in states]
    if isinstance(optimizer, torch.optim.RAdam):  # it adds ε before it corrects the bias
        if isinstance(corrections, Tensor):
            eps = torch.stack(torch._foreach_mul(list(corrections.rsqrt().unbind()), list(eps)))
        else:
            eps = [one / correction**0.5 for one, correction in zip(eps, corrections, strict=True)]
    moments = [_second_moment(state, group) for state, group in states]
    return list_like(gradients).preconditioned(gradients, moments, eps, corrections).sq_norm[-1]


def _second_moment(state: State, group: Group) -> Tensor:
    moment: Tensor = state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"]
    return torch.view_as_real(moment) if moment.is_complex() else moment


def _corrections(states: Sequence[tuple[State, Group]]) -> Numbers:
    """C of each: on the host where that knows how many steps there were, else fp64 on the device, [N]."""
    steps, betas = [state["step"] for state, _ in states], {group["betas"][1] for _, group in states}
    if len(betas) == 1 and all(isinstance(step, Tensor) and not step.is_cpu for step in steps):
        step_N = torch.stack([step.reshape(()) for step in steps]).double()
        corrections: Tensor = 1 - betas.pop() ** step_N
        return corrections
    found = [bias_correction(state, group) for state, group in states]
    like = next((correction for correction in found if isinstance(correction, Tensor)), None)
    if like is None:
        return [float(correction) for correction in found]
    on_device = [c.reshape(()) if isinstance(c, Tensor) else like.new_full((), c) for c in found]
    return torch.stack(on_device)
