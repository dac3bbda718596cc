"""What else decides the batch size: deadlines, budgets, memory, devices, data; which one binds, and what is possible.

Every limit is a range of global batches that it allows. The best batch is moved into the range that all allow, and the
limit that moved it is named. Where nothing is allowed the answer says what would be possible instead.
Steps and examples at a batch: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.trade_off import TradeOff

ROUNDING = 1e-12
"""Two limits that meet in one batch may miss each other by a rounding error of this share."""


class LimitKind(StrEnum):
    """What sets a limit."""

    STEPS = "steps"
    EXAMPLES = "examples"
    SECONDS = "seconds"
    USD = "usd"
    MEMORY = "memory"
    DEVICES = "devices"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class Limit:
    """The batches that one limit allows.

    Attributes:
        kind: What sets it.
        low: Smallest global batch it allows, in examples; above `high` where it allows none.
        high: Largest global batch it allows, in examples; infinite without one.
        text: What it says, in a sentence.
    """

    kind: LimitKind
    low: float
    high: float
    text: str

    @property
    def is_possible(self) -> bool:
        """Whether it allows any batch at all."""
        return self.low <= self.high * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Choice:
    """The best batch that all limits allow.

    Attributes:
        batch: In examples; None where the limits exclude each other.
        binding: The limits that moved it; those in conflict where there is none.
        text: Why, in a sentence; what is possible where there is none.
    """

    batch: float | None
    binding: tuple[Limit, ...]
    text: str


def deadline_in_steps(trade_off: TradeOff, *, max_steps: float) -> Limit:
    """At most so many optimizer steps: B ≥ B_crit S_min / (S_max - S_min).

    Args:
        trade_off: Steps and examples to the target.
        max_steps: S_max.

    Raises:
        DomainError: If the number of steps is not positive.
    """
    require_positive("leave the deadline out where there is none", max_steps=max_steps)
    if max_steps <= trade_off.min_steps:
        return Limit(
            LimitKind.STEPS,
            low=math.inf,
            high=0.0,
            text=f"{max_steps:,.0f} steps are too few: {trade_off.target} takes more than {trade_off.min_steps:,.0f} "
            "at any batch size.",
        )
    low = trade_off.min_examples / (max_steps - trade_off.min_steps)
    return Limit(LimitKind.STEPS, low, math.inf, f"{max_steps:,.0f} steps need a batch of {low:,.4g} or more.")


def budget_of_examples(trade_off: TradeOff, *, max_examples: float) -> Limit:
    """At most so many examples: B ≤ B_crit (E_max / E_min - 1).

    Args:
        trade_off: Steps and examples to the target.
        max_examples: E_max.

    Raises:
        DomainError: If the number of examples is not positive.
    """
    require_positive("leave the budget out where there is none", max_examples=max_examples)
    if max_examples <= trade_off.min_examples:
        return Limit(
            LimitKind.EXAMPLES,
            low=math.inf,
            high=0.0,
            text=f"{max_examples:,.4g} examples are too few: {trade_off.target} takes more than "
            f"{trade_off.min_examples:,.4g} at any batch size.",
        )
    high = (max_examples - trade_off.min_examples) / trade_off.min_steps
    return Limit(LimitKind.EXAMPLES, 0.0, high, f"{max_examples:,.4g} examples allow a batch of {high:,.4g} or less.")


def deadline_in_seconds(
    trade_off: TradeOff, *, max_seconds: float, overhead_seconds: float, seconds_per_example: float
) -> Limit:
    """At most so many seconds where a step takes α + β B: the batches between two roots.

    S (α + β B) ≤ T is β B² - (T / S_min - α - β B_crit) B + α B_crit ≤ 0; the least possible T is
    S_min (√α + √(β B_crit))², at B = √(α B_crit / β). A budget in USD on the same devices is a
    deadline, see `cost.affordable_seconds`.

    Args:
        trade_off: Steps and examples to the target.
        max_seconds: T.
        overhead_seconds: α.
        seconds_per_example: β.

    Raises:
        DomainError: If one of them is not positive.
    """
    require_positive("leave the deadline out where there is none", max_seconds=max_seconds)
    require_positive(
        "measure step times at two batch sizes; where they are equal, use deadline_in_steps",
        overhead_seconds=overhead_seconds,
        seconds_per_example=seconds_per_example,
    )
    critical = trade_off.critical_batch
    best = critical * math.sqrt(overhead_seconds / seconds_per_example / critical)
    # B / best + best / B ≤ 2 c: the two roots are best times c ± √(c² - 1), and their product is exactly best²
    spare = max_seconds / trade_off.min_steps - overhead_seconds - seconds_per_example * critical
    half = spare / (2 * seconds_per_example * best)
    if half < 1:
        least = trade_off.min_steps * (
            overhead_seconds + seconds_per_example * critical + 2 * seconds_per_example * best
        )
        return Limit(
            LimitKind.SECONDS,
            low=math.inf,
            high=0.0,
            text=f"{max_seconds:,.4g} s are too few: the fastest batch, {best:,.4g}, takes {least:,.4g} s to "
            f"{trade_off.target}.",
        )
    ratio = half + math.sqrt(half * half - 1)
    low, high = best / ratio, best * ratio
    return Limit(LimitKind.SECONDS, low, high, f"{max_seconds:,.4g} s need a batch between {low:,.4g} and {high:,.4g}.")


def memory(*, max_examples_per_device: float, num_devices: int, max_micro_batches: int | None = 1) -> Limit:
    """At most what the devices hold: B ≤ n m × the micro-batches that one is willing to accumulate.

    Args:
        max_examples_per_device: m, the largest micro-batch that fits.
        num_devices: n, data-parallel devices.
        max_micro_batches: Micro-batches accumulated in one step; None for as many as it takes, then memory is no limit.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("find it by trying", max_examples_per_device=max_examples_per_device)
    require_positive("count data-parallel devices", num_devices=num_devices)
    if max_micro_batches is None:
        return Limit(LimitKind.MEMORY, 0.0, math.inf, "Accumulating micro-batches, any batch fits into memory.")
    require_positive("1 means no accumulation", max_micro_batches=max_micro_batches)
    high = max_examples_per_device * num_devices * max_micro_batches
    return Limit(
        LimitKind.MEMORY, 0.0, high, f"Memory allows a batch of {high:,.0f}; accumulating micro-batches allows more."
    )


def every_device_busy(*, num_devices: int, min_examples_per_device: float = 1.0) -> Limit:
    """At least one micro-batch a device: B ≥ n m_min.

    Args:
        num_devices: n, data-parallel devices.
        min_examples_per_device: The smallest micro-batch worth running on one.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("count data-parallel devices", num_devices=num_devices)
    require_positive("1 example is the least", min_examples_per_device=min_examples_per_device)
    low = num_devices * min_examples_per_device
    return Limit(
        LimitKind.DEVICES, low, math.inf, f"{num_devices:,} devices need a batch of {low:,.4g} or more to all work."
    )


def data_set(*, num_examples: float) -> Limit:
    """At most the data set: a batch that holds every example has no noise left.

    Args:
        num_examples: D.

    Raises:
        DomainError: If the number is not positive.
    """
    require_positive("leave the data set out where it is streamed", num_examples=num_examples)
    return Limit(LimitKind.DATA, 0.0, num_examples, f"The data set holds {num_examples:,.0f} examples.")


def choose(best: float, limits: Sequence[Limit]) -> Choice:
    """The best batch, moved as little as the limits ask; the cost rises on both sides of the best.

    Args:
        best: √(r B_crit), in examples.
        limits: What must hold together.

    Raises:
        DomainError: If the best batch is not positive.
    """
    require_positive("price the noise scale first, see prices.py", best=best)
    impossible = tuple(limit for limit in limits if not limit.is_possible)
    if impossible:
        return Choice(None, impossible, " ".join(limit.text for limit in impossible))
    floor = max(limits, key=lambda limit: limit.low, default=None)
    ceiling = min(limits, key=lambda limit: limit.high, default=None)
    if floor is None or ceiling is None:
        return Choice(best, (), "Nothing limits the batch.")
    if floor.low > ceiling.high * (1 + ROUNDING):
        return Choice(
            None, (floor, ceiling), f"These exclude each other: {floor.text} {ceiling.text} Loosen one of them."
        )
    if best < floor.low:
        return Choice(min(floor.low, ceiling.high), (floor,), floor.text)
    if best > ceiling.high:
        return Choice(ceiling.high, (ceiling,), ceiling.text)
    return Choice(best, (), "No limit binds: the price decides.")
