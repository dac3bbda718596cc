"""By what an optimizer divides each coordinate of its gradient, read from the state that past steps left behind."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from noisescale.capture.sums.row_sums import list_like
from noisescale.kernels.operations import Numbers
from noisescale_core.errors import ConfigError

# N parameters

State = Mapping[str, Any]
Group = Mapping[str, Any]
Divisor = Callable[[State, Group], Tensor]


def divisor_of(optimizer: torch.optim.Optimizer) -> Divisor:
    """The function that gives an optimizer's divisor of one parameter, in its shape, in fp32 at least.

    A coordinate that has never had a gradient gets infinity, which leaves it out: Adam would divide it by ε alone. Past
    steps decide that, so nothing becomes biased.

    Raises:
        ConfigError: For an optimizer whose divisor is not known here.
    """
    for family, divisor in _FAMILIES:
        if isinstance(optimizer, family):
            return divisor
    name = type(optimizer).__name__
    if isinstance(optimizer, torch.optim.Adafactor):
        reason = "it keeps rows and columns of v only: not yet"
    elif not any("eps" in group for group in optimizer.param_groups):
        reason = "it divides by no root of squared gradients: kind 'simple' is its noise scale, 'sign' Lion's"
    else:
        reason = "how it divides is not known here"
    raise ConfigError(
        f"kind 'adam' knows Adam, AdamW, NAdam, RAdam and Adamax of torch.optim, got {name}: {reason}; leave it out"
    )


def unwrapped(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer inside a wrapper that keeps it as `.optimizer`, such as Accelerate's."""
    inner = optimizer
    while isinstance(wrapped := getattr(inner, "optimizer", None), torch.optim.Optimizer):
        inner = wrapped
    return inner


def _adam(state: State, group: Group) -> Tensor:
    """√v̂ + ε; with amsgrad the largest v so far.

    Source: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1; AMSGrad, Reddi et al. 2018, arXiv:1904.09237.
    """
    second_moment = _wide(state["max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq"])
    divisor = second_moment.sqrt().div_(bias_correction(state, group) ** 0.5).add_(group["eps"])
    return divisor.masked_fill_(second_moment == 0, torch.inf)


def _radam(state: State, group: Group) -> Tensor:
    """(√v + ε) / √(1 - β₂ᵗ): PyTorch's RAdam adds ε before it corrects the bias. Its rectification is left out.

    It is one factor for all coordinates, which cancels in the ratio.

    Source: Liu et al. 2020, arXiv:1908.03265, algorithm 2.
    """
    second_moment = _wide(state["exp_avg_sq"])
    divisor = second_moment.sqrt().add_(group["eps"]).div_(bias_correction(state, group) ** 0.5)
    return divisor.masked_fill_(second_moment == 0, torch.inf)


def _adamax(state: State, group: Group) -> Tensor:
    """The largest decayed gradient so far, which holds ε already; it needs no bias correction.

    Source: Kingma and Ba 2015, arXiv:1412.6980, section 7.1.
    """
    return _wide(state["exp_inf"])


def bias_correction(state: State, group: Group) -> Any:
    """1 - β₂ᵗ, a number, or a tensor where the count of steps lives on a device: reading it would wait."""
    step, beta2 = state["step"], group["betas"][1]
    if isinstance(step, Tensor):
        # double: 1 - β₂ᵗ is small in the first steps, and cancels in fp32
        step = float(step) if step.is_cpu else step.double()
    if isinstance(beta2, Tensor) and beta2.is_cpu:
        beta2 = float(beta2)
    return 1 - beta2**step


def _wide(moment: Tensor) -> Tensor:
    """In fp32 at least; of a complex parameter real and imaginary parts, two coordinates for Adam."""
    if moment.is_complex():
        return torch.view_as_real(moment)
    return moment.float() if moment.dtype in (torch.float16, torch.bfloat16) else moment


_FAMILIES: tuple[tuple[type[torch.optim.Optimizer], Divisor], ...] = (
    (torch.optim.Adam, _adam),  # AdamW too: it is a subclass
    (torch.optim.NAdam, _adam),
    (torch.optim.RAdam, _radam),
    (torch.optim.Adamax, _adamax),
)


# Divisors of the form √(v / c) + ε, which a kernel computes while it reads gradients and v once.


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
