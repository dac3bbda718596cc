"""What limits a planner's batch, which limit binds, how sure that is, and the whole batch to run inside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale_core.advice import limited as wording
from noisescale_core.advice.limited import NEXT_TO_NOTHING, whole_batch
from noisescale_core.advice.limits.bounds import limits_of_plan
from noisescale_core.theory import limits
from noisescale_core.theory.limits import Choice, Limit, Role
from noisescale_server.services.planner.asked import AskedPlan


@dataclass(frozen=True, slots=True)
class Allowed:
    """The batches that one limit allows.

    Attributes:
        kind: What sets it.
        name: What it is called, without an article.
        breaks: What a batch outside does: "misses the deadline".
        role: A deadline asks for large batches, a budget for small ones; None for a limit of the batch itself.
        quantity: Field of a row that it limits; None for a limit of the batch itself.
        asked: The number that was said, in the unit of `quantity`; devices or examples else; None where none was.
        low: Smallest batch, in examples; None where it allows no batch at all.
        high: Largest batch; None where it sets none, or allows no batch at all.
        is_possible: Whether any batch meets it.
        is_binding: Whether it moves the best batch, or is in conflict with another one.
        text: What it says, in a sentence.
    """

    kind: str
    name: str
    breaks: str
    role: Role | None
    quantity: str | None
    asked: float | None
    low: float | None
    high: float | None
    is_possible: bool
    is_binding: bool
    text: str


@dataclass(frozen=True, slots=True)
class Reach:
    """A batch and where it lies as B_crit goes over its interval.

    Attributes:
        value: In examples.
        low: Lower end: 0 where, at an end of B_crit's interval, no batch is small enough for a budget.
        high: Upper end; None where, at an end of it, no batch is large enough for a deadline.
        level: Confidence.
    """

    value: float
    low: float
    high: float | None
    level: float


@dataclass(frozen=True, slots=True)
class Inside:
    """The best batch inside the limits.

    Attributes:
        choice: The unrounded batch, and what moved it.
        text: Why, in a sentence; what is possible where there is none.
        reach: The same with its interval; None where the limits exclude each other.
        batch: The whole batch to run; None where none can be.
        limits: All limits as they are told, at the value of B_crit.
    """

    choice: Choice
    text: str
    reach: Reach | None
    batch: int | None
    limits: tuple[Allowed, ...]

    @property
    def allowed(self) -> Sequence[Limit]:
        """The limits in numbers."""
        return self.choice.limits


def inside(asked: AskedPlan) -> Inside:
    """The best batch at the stated price, moved into the limits and rounded to one that can be run.

    Args:
        asked: B_crit, price and limits.

    Raises:
        ValueError: If a number is out of range.
    """
    best = asked.priced.best
    allowed = limits_at(asked, asked.critical_batch.value)
    choice = limits.choose(best.value, allowed)
    told = tuple(_told(limit, asked.example, is_binding=limit in choice.binding) for limit in allowed)
    text = wording.why(choice, asked.example)
    if choice.batch is None:
        return Inside(choice, text, None, None, told)
    return Inside(choice, text, _reach(asked, choice.batch), whole(asked, choice.batch, allowed), told)


def limits_at(asked: AskedPlan, critical_batch: float) -> list[Limit]:
    """The limits as ranges of batches, were this the critical batch; deadlines and budgets need a plan.

    Args:
        asked: With limits.
        critical_batch: B_crit in examples.
    """
    to_target, given, pace = asked.trade_off_at(critical_batch), asked.given, asked.machines.pace
    found = [] if to_target is None else limits_of_plan(to_target, given, pace)
    found += _of_devices(asked)
    if asked.num_examples is not None:
        found.append(limits.data_set(num_examples=asked.num_examples))
    return found


def _of_devices(asked: AskedPlan) -> list[Limit]:
    given, machines = asked.given, asked.machines
    each, most, found = machines.examples_of_a_device, machines.max_devices, []
    if most is not None and each is not None:
        found.append(limits.devices_at_most(num_devices=most, examples_per_device=each))
    if given.num_devices is not None and machines.pace is not None and each is None:
        found.append(limits.every_device_busy(num_devices=given.num_devices))
    num_devices = most or given.num_devices
    if given.examples_per_device is not None and num_devices is not None:
        found.append(
            limits.memory(
                max_examples_per_device=given.examples_per_device,
                num_devices=num_devices,
                max_micro_batches=given.max_micro_batches,
            )
        )
    return found


def whole(asked: AskedPlan, wanted: float, allowed: Sequence[Limit]) -> int | None:
    """The batch to run next to the wanted one: whole, inside the limits, of whole devices; None where there is none.

    Args:
        asked: B_crit, price and devices.
        wanted: In examples.
        allowed: The limits.
    """
    priced, each = asked.priced, asked.machines.examples_of_a_device
    if each is None:
        return whole_batch(wanted, allowed, asked.given, priced)
    # devices come with the batch: none stay that it has to be a multiple of, but it should fill those that run it
    rounded = whole_batch(wanted, allowed, replace(asked.given, examples_per_device=None, num_devices=None), priced)
    if rounded is None or wanted < each or each < 1 or not each.is_integer() or rounded % each == 0:
        return rounded
    filled = replace(asked.given, examples_per_device=int(each), num_devices=1)
    return whole_batch(wanted, allowed, filled, priced) or rounded


def _reach(asked: AskedPlan, batch: float) -> Reach:
    """Limits of a plan move with B_crit, so the best batch is looked for at both ends of its interval again."""
    critical, best = asked.critical_batch.interval, asked.priced.best
    found = [batch]
    for end, wanted in ((critical.low, best.low), (critical.high, best.high)):
        # an open end: B_crit may be next to nothing, or beyond every batch
        at = min(max(end, critical.value * NEXT_TO_NOTHING), critical.value / NEXT_TO_NOTHING)
        near = min(max(wanted, best.value * NEXT_TO_NOTHING), best.value / NEXT_TO_NOTHING)
        moved = limits.choose(near, limits_at(asked, at))
        nowhere = math.inf if any(limit.is_deadline for limit in moved.binding) else 0.0
        found.append(nowhere if moved.batch is None else moved.batch)
    high = max(found)
    return Reach(batch, min(found), None if high == math.inf else high, best.level)


def _told(limit: Limit, example: str, *, is_binding: bool) -> Allowed:
    can, kind = limit.is_possible, limit.kind
    return Allowed(
        kind=kind.value,
        name=kind.called,
        breaks=kind.breaks,
        role=kind.role,
        quantity=kind.quantity,
        asked=limit.asked,
        low=limit.low if can else None,
        high=limit.high if can and limit.high < math.inf else None,
        is_possible=can,
        is_binding=is_binding,
        text=wording.sentence(limit, example),
    )
