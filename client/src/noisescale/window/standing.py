"""Where a run stands, for whoever changes its batch or learning rate: sums so far, to take differences of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule
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


class RunningLosses:
    """The same for a run that goes on."""

    __slots__ = ("_num_finite", "_num_not_finite", "_squares", "_total")

    def __init__(self) -> None:
        self._num_finite = self._num_not_finite = 0
        self._total = self._squares = 0.0

    def add(self, loss: float) -> None:
        """Add one step's."""
        if math.isfinite(loss):
            self._num_finite += 1
            self._total += loss
            self._squares += loss * loss
        else:
            self._num_not_finite += 1

    def so_far(self) -> LossSums:
        """The sums of all steps so far."""
        return LossSums(self._num_finite, self._total, self._squares, self._num_not_finite)


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
