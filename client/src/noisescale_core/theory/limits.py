"""What else decides the batch size: deadlines, budgets, memory, devices, data; which one binds, and what is possible.

Every limit is a range of global batches that it allows. The best batch is moved into the range that all allow, and the
limit that moved it is named. Where nothing is allowed the answer says what would be possible instead.
Steps and examples at a batch: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.trade_off import TradeOff

ROUNDING = 1e-12
"""Two limits that meet in one batch may miss each other by a rounding error of this share."""

Role = Literal["deadline", "budget"]
"""A deadline asks for large batches, a budget for small ones."""


class LimitKind(StrEnum):
    """What sets a limit, and all that is said of this kind anywhere: answers of the API carry it to the pages.

    Attributes:
        called: Its name, without an article.
        breaks: What a batch outside does, as a verb: "misses the deadline".
        role: Of a limit of the plan; None of a limit of the batch itself.
        unit: Of its number, where it is one of the plan; an example is called as the run calls it.
        quantity: What of a plan it is a number of, by the names of docs/rest.md.
    """

    called: str
    breaks: str
    role: Role | None
    unit: str
    quantity: str | None

    STEPS = "steps", "step limit", "exceeds the step limit", "deadline", "steps", "steps"
    EXAMPLES = "examples", "example limit", "exceeds the example limit", "budget", "{example}s", "examples"
    SECONDS = "seconds", "deadline", "misses the deadline", "deadline", "h", "hours"
    USD = "usd", "budget", "exceeds the budget", "budget", "USD", "usd"
    MEMORY = "memory", "memory limit", "exceeds the memory"
    DEVICES = "devices", "number of devices", "does not fit the devices"
    DATA = "data", "data size", "exceeds the data"

    def __new__(
        cls, value: str, called: str, breaks: str, role: Role | None = None, unit: str = "", quantity: str | None = None
    ) -> "LimitKind":
        """A kind with its words."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.called, kind.breaks, kind.role, kind.unit, kind.quantity = called, breaks, role, unit, quantity
        return kind


@dataclass(frozen=True, slots=True)
class Limit:
    """The batches that one limit allows; `advice.words.limits` says it in a sentence.

    Attributes:
        kind: What sets it.
        low: Smallest global batch it allows, in examples; above `high` where it allows none.
        high: Largest global batch it allows, in examples; infinite without one.
        asked: The number that was said, of a limit of the plan in its kind's unit; None where none was.
        least: The least that any batch takes, in the same unit; None for a limit of the batch itself.
        target: What the plan reaches.
        words: A sentence of whoever sets it, where it follows from no law of this module.
    """

    kind: LimitKind
    low: float
    high: float
    asked: float | None = None
    least: float | None = None
    target: str = ""
    words: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether it allows any batch at all."""
        return self.low <= self.high * (1 + ROUNDING)

    @property
    def is_deadline(self) -> bool:
        """Whether it asks for large batches."""
        return self.kind.role == "deadline"

    @property
    def is_budget(self) -> bool:
        """Whether it asks for small ones."""
        return self.kind.role == "budget"


@dataclass(frozen=True, slots=True)
class Choice:
    """The best batch that all limits allow.

    Attributes:
        batch: In examples; None where the limits exclude each other.
        binding: The limits that moved it; those in conflict where there is none.
        limits: All of them.
    """

    batch: float | None
    binding: tuple[Limit, ...]
    limits: tuple[Limit, ...]


def deadline_in_steps(trade_off: TradeOff, *, max_steps: float) -> Limit:
    """At most so many optimizer steps: B ≥ B_crit S_min / (S_max - S_min).

    Args:
        trade_off: Steps and examples to the target.
        max_steps: S_max.

    Raises:
        DomainError: If the number of steps is not positive.
    """
    require_positive("leave the deadline out where there is none", max_steps=max_steps)
    least, target = trade_off.min_steps, trade_off.target
    if max_steps <= least:
        return Limit(LimitKind.STEPS, math.inf, 0.0, max_steps, least, target)
    low = trade_off.min_examples / (max_steps - least)
    return Limit(LimitKind.STEPS, low, math.inf, max_steps, least, target)


def budget_of_examples(trade_off: TradeOff, *, max_examples: float) -> Limit:
    """At most so many examples: B ≤ B_crit (E_max / E_min - 1).

    Args:
        trade_off: Steps and examples to the target.
        max_examples: E_max.

    Raises:
        DomainError: If the number of examples is not positive.
    """
    require_positive("leave the budget out where there is none", max_examples=max_examples)
    least, target = trade_off.min_examples, trade_off.target
    if max_examples <= least:
        return Limit(LimitKind.EXAMPLES, math.inf, 0.0, max_examples, least, target)
    high = (max_examples - least) / trade_off.min_steps
    return Limit(LimitKind.EXAMPLES, 0.0, high, max_examples, least, target)


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
    fastest = trade_off.min_steps * (overhead_seconds + seconds_per_example * (critical + 2 * best))
    said = (max_seconds / SECONDS_PER_HOUR, fastest / SECONDS_PER_HOUR, trade_off.target)
    if half < 1:
        return Limit(LimitKind.SECONDS, math.inf, 0.0, *said)
    ratio = half + math.sqrt(half * half - 1)
    return Limit(LimitKind.SECONDS, best / ratio, best * ratio, *said)


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
        return Limit(LimitKind.MEMORY, 0.0, math.inf)
    require_positive("1 means no accumulation", max_micro_batches=max_micro_batches)
    return Limit(LimitKind.MEMORY, 0.0, max_examples_per_device * num_devices * max_micro_batches)


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
    return Limit(LimitKind.DEVICES, num_devices * min_examples_per_device, math.inf, num_devices)


def devices_at_most(*, num_devices: int, examples_per_device: float) -> Limit:
    """At most what the devices run without a longer step, where they are added with the batch: B ≤ n m.

    Args:
        num_devices: n, devices that there are.
        examples_per_device: m, examples that one puts through a step.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("count the devices that there are", num_devices=num_devices)
    require_positive("divide a batch by the devices that run it", examples_per_device=examples_per_device)
    return Limit(LimitKind.DEVICES, 0.0, num_devices * examples_per_device, num_devices)


def data_set(*, num_examples: float) -> Limit:
    """At most the data set: a batch that holds every example has no noise left.

    Args:
        num_examples: D.

    Raises:
        DomainError: If the number is not positive.
    """
    require_positive("leave the data set out where it is streamed", num_examples=num_examples)
    return Limit(LimitKind.DATA, 0.0, num_examples, num_examples)


def choose(best: float, limits: Sequence[Limit]) -> Choice:
    """The best batch, moved as little as the limits ask; the cost rises on both sides of the best.

    Args:
        best: √(r B_crit), in examples.
        limits: What must hold together.

    Raises:
        DomainError: If the best batch is not positive.
    """
    require_positive("price the noise scale first, see prices.py", best=best)
    given = tuple(limits)
    impossible = tuple(limit for limit in given if not limit.is_possible)
    if impossible:
        return Choice(None, impossible, given)
    floor = max(given, key=lambda limit: limit.low, default=None)
    ceiling = min(given, key=lambda limit: limit.high, default=None)
    if floor is None or ceiling is None:
        return Choice(best, (), given)
    if floor.low > ceiling.high * (1 + ROUNDING):
        return Choice(None, (floor, ceiling), given)
    if best < floor.low:
        return Choice(min(floor.low, ceiling.high), (floor,), given)
    if best > ceiling.high:
        return Choice(ceiling.high, (ceiling,), given)
    return Choice(best, (), given)
