"""Where a run stands, for whoever changes its batch or learning rate: sums so far, to take differences of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from noisescale_core.advice.rate_coefficients import Schedule
from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.path import Path

if TYPE_CHECKING:
    import torch


class LossSums(NamedTuple):
    """Sums over the losses that were logged.

    Attributes:
        num_finite: Steps with a finite one.
        total: Σ of them.
        squares: Σ of their squares.
        num_not_finite: Steps with one that is not.
    """

    num_finite: int = 0
    total: float = 0.0
    squares: float = 0.0
    num_not_finite: int = 0

    def with_loss(self, loss: float) -> "LossSums":
        """With one more step."""
        if not math.isfinite(loss):
            return self._replace(num_not_finite=self.num_not_finite + 1)
        return LossSums(self.num_finite + 1, self.total + loss, self.squares + loss * loss, self.num_not_finite)

    def since(self, before: "LossSums") -> tuple[float, float]:
        """Mean loss since an earlier moment, and its standard error: not finite where the loss was not, or unknown.

        Args:
            before: The sums of that moment.
        """
        count, not_finite = self.num_finite - before.num_finite, self.num_not_finite - before.num_not_finite
        if not_finite or not count:
            return (math.inf if not_finite else math.nan), math.inf
        mean = (self.total - before.total) / count
        if count < 2:
            return mean, math.inf
        variance = max(0.0, (self.squares - before.squares) / count - mean * mean) * count / (count - 1)
        return mean, math.sqrt(variance / count)


@dataclass(frozen=True, slots=True)
class Standing:
    """A run at one moment.

    Attributes:
        looks: The sums that say how likely each noise scale is, oldest first.
        path: Of the parameters; None where it is not measured.
        schedule: Of the learning rate so far.
        losses: Logged so far.
        batch_size: In use, in examples; None while unknown.
        model: That is watched; None where none is.
    """

    looks: Sequence[Look]
    path: Path | None
    schedule: Schedule
    losses: LossSums
    batch_size: float | None
    model: "torch.nn.Module | None"
