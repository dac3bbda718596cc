"""Batches that a job can train with: whole micro-batches of all devices, inside limits, larger ones only by default."""

import math
from dataclasses import dataclass

from noisescale_core.advice.decision import LEAST_FACTOR
from noisescale_core.advice.limited import why
from noisescale_core.theory.limits import Limit, choose


@dataclass(frozen=True, slots=True)
class PossibleBatches:
    """The batches that a decision may ask for.

    Attributes:
        multiple_of: Every batch is a multiple of it, such as a micro-batch on each device.
        limits: Which batches are allowed at all.
        may_shrink: Whether a batch may become smaller.
    """

    multiple_of: int
    limits: tuple[Limit, ...]
    may_shrink: bool

    def nearest(self, wanted: float, present: int) -> tuple[int | None, str]:
        """The batch to change to, and what moved it from the wanted one; None where the change is not worth it.

        Args:
            wanted: By the policy, in examples.
            present: In examples.
        """
        choice = choose(wanted, self.limits)
        if choice.batch is None:
            return None, why(choice)
        text = why(choice) if choice.binding else ""
        batch = self._rounded(choice.batch)
        if batch is None:
            return None, f"No multiple of {self.multiple_of:,} is within the limits. {text}".strip()
        if batch < present and not self.may_shrink:
            return None, f"{batch:,} would be better than {present:,}, and batches do not shrink here"
        if max(batch / present, present / batch) < LEAST_FACTOR:
            return None, f"{batch:,} is too close to {present:,} to be worth a change. {text}".strip()
        return batch, text

    def _rounded(self, batch: float) -> int | None:
        """The multiple next to a batch on the log scale that no limit forbids."""
        below = max(1, math.floor(batch / self.multiple_of)) * self.multiple_of
        near = sorted((below, below + self.multiple_of), key=lambda whole: abs(math.log(whole / batch)))
        return next((whole for whole in near if all(limit.low <= whole <= limit.high for limit in self.limits)), None)
