"""What a job can change its batch to, and how."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from noisescale_core.advice.decision import LEAST_FACTOR
from noisescale_core.advice.limited import sentence, why
from noisescale_core.errors import ConfigError
from noisescale_core.theory.limits import Limit, LimitKind, choose
from noisescale_lab.follow.agreement import num_ranks

# Batches that a job can train with: whole micro-batches of all devices, inside limits, larger ones only by default.


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


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The batches of a job, all in examples.

    Attributes:
        now: The present global batch.
        micro_batch: What one device puts through one backward; batches are whole micro-batches of all devices.
        devices: Data-parallel ones; None: the processes of the job.
        multiple_of: Examples that every batch is a multiple of; None: one micro-batch on each device.
        smallest: To train with; None: one micro-batch a device.
        largest: To train with; has to be named before anything is changed.
        limits: Further ones, by `noisescale_core.theory.limits`: the data set, a deadline.
        may_shrink: Whether a batch may become smaller.
        set: Told the new global batch between two steps; None: the loop reads `follower.accumulation_steps`.
        may_change: Whether the job can take on that batch now; until then a decision waits.
    """

    now: int
    micro_batch: int = 1
    devices: int | None = None
    multiple_of: int | None = None
    smallest: int | None = None
    largest: int | None = None
    limits: Sequence[Limit] = ()
    may_shrink: bool = True
    set: Callable[[int], Any] | None = None
    may_change: Callable[[int], bool] | None = None

    @property
    def whole(self) -> int:
        """Examples of one micro-batch on each device."""
        return self.micro_batch * (self.devices or num_ranks())

    def possible(self) -> PossibleBatches:
        """Those that a decision may ask for.

        Raises:
            ConfigError: With the field, its value, and the way out.
        """
        multiple = self.multiple_of or self.whole
        limits = (*self.limits, *self._range(multiple))
        self._refuse(multiple, limits)
        return PossibleBatches(multiple, limits, self.may_shrink)

    def _range(self, multiple: int) -> list[Limit]:
        low = max(self.smallest or 0, multiple)
        found = [Limit(LimitKind.DEVICES, low, float("inf"), words=f"The smallest batch to train with is {low:,}.")]
        if self.largest is not None:
            words = f"The largest batch to train with is {self.largest:,}."
            found.append(Limit(LimitKind.MEMORY, 0.0, self.largest, words=words))
        return found

    def _refuse(self, multiple: int, limits: Sequence[Limit]) -> None:
        whole = self.whole
        if whole < 1 or self.now < whole or self.now % whole:
            raise ConfigError(
                f"batches.now must be whole micro-batches of all devices, got {self.now} and {whole} examples a "
                "micro-batch: give micro_batch and devices as they are"
            )
        if multiple < 1 or multiple % whole:
            raise ConfigError(
                f"batches.multiple_of must be whole micro-batches of all devices, got {multiple}: use a multiple of "
                f"{whole}"
            )
        outside = [sentence(limit) for limit in limits if not limit.low <= self.now <= limit.high]
        if outside:
            raise ConfigError(f"batches.now must be within the limits, got {self.now}: {' '.join(outside)}")
