"""What an optimizer's update is made of besides the gradient: its rate, decay and momentum."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from noisescale_core.estimators.path import without_lookahead

DECOUPLED = ("AdamW", "PagedAdamW", "Muon", "Lion", "Adafactor", "SGDW")
"""How classes begin whose weight decay is no part of the gradient."""


def decay_of(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> "float | Tensor":
    """The share of the parameters that a step's decoupled weight decay takes away: rate × decay.

    An L2 penalty counts as what it is, a part of the gradient.

    Args:
        optimizer: Whose step it is.
        group: Of its parameters.
    """
    return group.get("lr", 0.0) * group.get("weight_decay", 0.0) if has_decoupled_decay(optimizer, group) else 0.0


def has_decoupled_decay(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> bool:
    """Whether weight decay takes a share of the parameters away, and is no part of the gradient.

    Args:
        optimizer: Whose step it is.
        group: Of its parameters.
    """
    is_decoupled = group.get("decoupled_weight_decay")
    return type(optimizer).__name__.startswith(DECOUPLED) if is_decoupled is None else bool(is_decoupled)


def momentum_of(group: dict[str, Any]) -> float:
    """The share of an update that the next one repeats; of Nesterov's the one that walks as far.

    Args:
        group: Of the optimizer's parameters.
    """
    betas = group.get("betas")
    momentum = float(betas[0] if betas else group.get("momentum", 0.0) or 0.0)
    if not 0 <= momentum < 1:
        return 0.0
    return without_lookahead(momentum) if group.get("nesterov") else momentum


def rate_of(group: dict[str, Any]) -> float | None:
    """The learning rate; None where there is none, or reading it would wait for the device.

    Args:
        group: Of the optimizer's parameters.
    """
    rate = group.get("lr")
    if isinstance(rate, Tensor):
        return float(rate) if rate.device.type == "cpu" else None
    return None if rate is None else float(rate)
