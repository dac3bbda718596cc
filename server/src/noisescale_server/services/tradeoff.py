"""The planner's table: steps, examples, hours, money and energy at any batch sizes, and which of them the limits allow.

Steps and examples follow B_crit and the target's S_min (McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11). Where no
plan is known they are said relative to S_min and E_min. Time, devices and prices are taken as exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale.theory import limits
from noisescale.theory.advice.bounds import limits_of_plan
from noisescale.theory.advice.pace import Pace
from noisescale.theory.advice.parts import Constraints
from noisescale.theory.advice.predictions import Banded, banded
from noisescale.theory.cost import SECONDS_PER_HOUR
from noisescale.theory.intervals import Carried, Estimate
from noisescale.theory.limits import Choice, Limit
from noisescale.theory.prices import ExchangeRate
from noisescale.theory.trade_off import TradeOff, regret_at_price
from noisescale.theory.what_if import Plan, what_if


@dataclass(frozen=True, slots=True)
class Machines:
    """What a step runs on.

    Attributes:
        pace: Time, devices and price of a step; None where nobody said.
        usd_per_hour_besides: Price of an hour of the run besides its devices.
        kilowatts_per_device: Mean power of a device; None where nobody said.
    """

    pace: Pace | None
    usd_per_hour_besides: float = 0.0
    kilowatts_per_device: float | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the table is made from.

    Attributes:
        critical_batch: B_crit in examples, with its errors.
        plan: Steps to the target at one batch; None: everything is relative.
        batches: In examples.
        machines: What a step runs on.
        rate: What a step is worth.
        given: Deadlines and budgets.
        target: What is reached, in words.
    """

    critical_batch: Estimate
    plan: Plan | None
    batches: Sequence[float]
    machines: Machines
    rate: ExchangeRate
    given: Constraints
    target: str


@dataclass(frozen=True, slots=True)
class Row:
    """One batch size.

    Attributes:
        batch_size: In examples.
        num_devices: That run it; None where nobody said how many there are.
        steps_factor: Steps divided by the least possible, S / S_min.
        examples_factor: Examples divided by the least possible, E / E_min.
        steps: Optimizer steps to the target; None without a plan.
        examples: Examples to it.
        hours: Wall time; None without a step time.
        usd: Money; None without a price.
        kilowatt_hours: Energy; None without the power of a device.
        regret: Extra cost against the best batch at this price, as a share.
        breaks: Limits that it does not meet, at the value of B_crit.
        is_pareto: No other batch of the table is both quicker and cheaper; without hours, has fewer steps and examples.
    """

    batch_size: float
    num_devices: float | None
    steps_factor: Banded
    examples_factor: Banded
    steps: Banded | None
    examples: Banded | None
    hours: Banded | None
    usd: Banded | None
    kilowatt_hours: Banded | None
    regret: float
    breaks: tuple[str, ...]
    is_pareto: bool


@dataclass(frozen=True, slots=True)
class Table:
    """The table and the best batch in it.

    Attributes:
        rows: One for each batch, rising.
        best_batch: At this price, by both errors.
        choice: The same inside the limits.
        assumes: What is assumed of a step's time; None without one.
    """

    rows: tuple[Row, ...]
    best_batch: Banded
    choice: Choice
    assumes: str | None


def table(asked: Asked) -> Table:
    """The table of what was asked.

    Args:
        asked: B_crit, batches, machines, price and limits.

    Raises:
        ValueError: If a number is out of range.
    """
    critical = asked.critical_batch
    allowed = limits_of(asked)
    rows = [_row(asked, batch, allowed) for batch in sorted(set(asked.batches))]
    best = asked.rate.recommended_batch(critical)
    pace = asked.machines.pace
    return Table(
        rows=tuple(_with_pareto(rows)),
        best_batch=banded(best.through(lambda batch: batch)),
        choice=limits.choose(best.value, allowed),
        assumes=None if pace is None else pace.said,
    )


def trade_off_of(asked: Asked) -> TradeOff | None:
    """Steps and examples to the target at any batch; None without a plan.

    Args:
        asked: With a plan.
    """
    if asked.plan is None:
        return None
    return TradeOff.from_run(
        steps=asked.plan.steps,
        batch=asked.plan.batch,
        critical_batch=asked.critical_batch.value,
        target=asked.target,
    )


def limits_of(asked: Asked) -> list[Limit]:
    """The limits as ranges of batches; deadlines and budgets need a plan.

    Args:
        asked: With limits.
    """
    to_target, given, pace = trade_off_of(asked), asked.given, asked.machines.pace
    found = [] if to_target is None else limits_of_plan(to_target, given, pace)
    if given.examples_per_device is not None and given.num_devices is not None:
        found.append(
            limits.memory(
                max_examples_per_device=given.examples_per_device,
                num_devices=given.num_devices,
                max_micro_batches=given.max_micro_batches,
            )
        )
    return found


def _row(asked: Asked, batch: float, allowed: Sequence[Limit]) -> Row:
    critical, pace, plan = asked.critical_batch, asked.machines.pace, asked.plan
    steps, examples = _to_target(critical, batch, plan)
    hours = None if pace is None or steps is None else steps.times(pace.seconds(batch) / SECONDS_PER_HOUR)
    devices = None if pace is None else pace.devices(batch)
    price = _usd_per_step(asked.machines, batch)
    power = asked.machines.kilowatts_per_device
    energy = None if hours is None or devices is None or power is None else hours.times(devices * power)
    return Row(
        batch_size=batch,
        num_devices=devices,
        steps_factor=banded(critical.through(lambda at: 1 + at / batch)),
        examples_factor=banded(critical.through(lambda at: 1 + batch / at if at > 0 else float("inf"))),
        steps=None if steps is None else banded(steps),
        examples=None if examples is None else banded(examples),
        hours=None if hours is None else banded(hours),
        usd=None if steps is None or price is None else banded(steps.times(price)),
        kilowatt_hours=None if energy is None else banded(energy),
        regret=regret_at_price(
            batch=batch, critical_batch=critical.value, examples_per_step=asked.rate.at(critical.value)
        ),
        breaks=tuple(limit.kind.value for limit in allowed if not _meets(batch, limit)),
        is_pareto=False,
    )


def _to_target(critical: Estimate, batch: float, plan: Plan | None) -> tuple[Carried | None, Carried | None]:
    if plan is None:
        return None, None
    found = what_if(plan, batch=batch, critical_batch=critical)
    return found.steps, found.examples


def _usd_per_step(machines: Machines, batch: float) -> float | None:
    if machines.pace is None:
        return None
    devices = machines.pace.usd_per_step(batch)
    besides = machines.usd_per_hour_besides * machines.pace.seconds(batch) / SECONDS_PER_HOUR
    if devices is None:
        return besides or None
    return devices + besides


def _meets(batch: float, limit: Limit) -> bool:
    return limit.low * (1 - limits.ROUNDING) <= batch <= limit.high * (1 + limits.ROUNDING)


def _with_pareto(rows: Sequence[Row]) -> list[Row]:
    return [replace(row, is_pareto=not any(_beats(other, row) for other in rows)) for row in rows]


def _beats(other: Row, row: Row) -> bool:
    theirs, ours = _time_and_money(other), _time_and_money(row)
    return all(a <= b for a, b in zip(theirs, ours, strict=True)) and theirs != ours


def _time_and_money(row: Row) -> tuple[float, float]:
    if row.hours is not None and row.usd is not None:
        return row.hours.value, row.usd.value
    return row.steps_factor.value, row.examples_factor.value
