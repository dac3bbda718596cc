"""Whether one arm is as good as another, on the same held-out batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from noisescale_core.errors import ConfigError
from noisescale_core.estimators.student_t import t_quantile

if TYPE_CHECKING:
    import torch

ROUNDING = 1e-6


# Whether an arm kept the learning rate that it was given: a schedule that steps inside it changes what is compared.


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


class Verdict(StrEnum):
    """What a paired comparison says of an arm's loss against the margin.

    AS_GOOD: not worse by more than the margin. WORSE: worse by more than it. OPEN: noise leaves both possible.
    """

    AS_GOOD = "as_good"
    WORSE = "worse"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm's loss minus another's, paired by held-out batch.

    Attributes:
        difference: Mean; infinite where the arm diverged and the other did not.
        low: One-sided lower limit at `level`.
        high: One-sided upper limit at `level`.
        level: Confidence of each limit.
        verdict: Against the margin.
    """

    difference: float
    low: float
    high: float
    level: float
    verdict: Verdict


def compare(losses: Sequence[float], others: Sequence[float], *, margin: float, level: float) -> Comparison:
    """The one-sided paired t test of non-inferiority: as good if the upper limit is at most the margin.

    Pairs share what makes a batch hard, so few batches tell small differences apart. Larger losses are worse.

    Args:
        losses: Of the arm, one for each held-out batch.
        others: Of the arm that it is compared with, on the same batches.
        margin: How much worse does not matter, in units of the loss.
        level: Confidence of each one-sided limit.

    Raises:
        ConfigError: Unless both have the same number of batches, at least two.
    """
    if len(losses) != len(others) or len(losses) < 2:
        raise ConfigError(
            f"evaluate() must give the losses of the same held-out batches, two or more, "
            f"got {len(losses)} and {len(others)}: 8 to 32 batches are a start"
        )
    if not all(map(math.isfinite, losses)) or not all(map(math.isfinite, others)):
        return _after_divergence(losses, others, level)
    differences = [loss - other for loss, other in zip(losses, others, strict=True)]
    mean = fmean(differences)
    half = t_quantile(level, len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))
    low, high = mean - half, mean + half
    verdict = Verdict.AS_GOOD if high <= margin else Verdict.WORSE if low > margin else Verdict.OPEN
    return Comparison(mean, low, high, level, verdict)


def _after_divergence(losses: Sequence[float], others: Sequence[float], level: float) -> Comparison:
    if all(map(math.isfinite, others)):
        return Comparison(math.inf, math.inf, math.inf, level, Verdict.WORSE)
    if all(map(math.isfinite, losses)):
        return Comparison(-math.inf, -math.inf, -math.inf, level, Verdict.AS_GOOD)
    return Comparison(math.nan, -math.inf, math.inf, level, Verdict.OPEN)
