"""Whether an arm kept the learning rate that it was given: a schedule that steps inside it changes what is compared."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROUNDING = 1e-6


def set_rates(optimizer: "torch.optim.Optimizer | None", factor: float) -> None:
    """Multiply the learning rate of every group, so that groups keep their ratios."""
    for group in () if optimizer is None else optimizer.param_groups:
        group["lr"] = group["lr"] * factor


def rate_now(optimizer: "torch.optim.Optimizer | None") -> float | None:
    """The learning rate of the first group; None without an optimizer."""
    return None if optimizer is None else float(optimizer.param_groups[0]["lr"])


def changed_to(before: float | None, now: float | None) -> float | None:
    """The rate now, where it is another than before; None where it is the same or unknown."""
    if before is None or now is None or math.isclose(before, now, rel_tol=ROUNDING):
        return None
    return now


def warning(batch_size: int, lr: float, lr_at_end: float) -> str:
    """What a changed rate means, and the way out."""
    return (
        f"the arm of batch {batch_size:,} began with learning rate {lr:.4g} and ended with {lr_at_end:.4g}: a schedule "
        "stepped inside it, so arms differ in more than they say. In train_steps() do not step it, or set the rate to "
        "lr after it."
    )
