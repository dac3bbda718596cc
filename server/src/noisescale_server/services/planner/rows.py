"""One batch size of a planner's table: steps, examples, hours, money and energy to the target, each with its interval.

Steps and examples follow B_crit and the target's S_min (McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11). Where no
plan is known they are said relative to S_min and E_min. Time, devices and prices are taken as exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale_core.advice.limits.predictions import Banded, banded
from noisescale_core.theory import limits
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.intervals import Carried, Interval, LogError
from noisescale_core.theory.limits import Limit
from noisescale_core.theory.trade_off import regret_at_price
from noisescale_core.theory.what_if import what_if
from noisescale_server.services.planner.asked import AskedPlan, Machines

TimeAndMoney = tuple[float, float]
"""What two plans are compared by."""


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
        hours: Wall time; None without a step time that tells it.
        usd: Money; None without that or a price.
        device_hours: Devices × hours; None without devices and a step time.
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
    device_hours: Banded | None
    kilowatt_hours: Banded | None
    regret: float
    breaks: tuple[str, ...]
    is_pareto: bool = False


def row_at(asked: AskedPlan, batch: float, allowed: Sequence[Limit]) -> Row:
    """What the target takes at one batch.

    Args:
        asked: B_crit, plan and machines.
        batch: In examples.
        allowed: The limits that it may break.
    """
    critical, pace = asked.critical_batch, asked.machines.pace
    steps, examples = _to_target(asked, batch)
    seconds = None if pace is None else pace.seconds(batch)
    hours = None if seconds is None or steps is None else steps.times(seconds / SECONDS_PER_HOUR)
    devices = None if pace is None else pace.devices(batch)
    price = usd_per_step(asked.machines, batch)
    power = asked.machines.kilowatts_per_device
    worked = None if hours is None or devices is None else hours.times(devices)
    return Row(
        batch_size=batch,
        num_devices=devices,
        steps_factor=banded(critical.through(lambda at: 1 + at / batch)),
        examples_factor=banded(critical.through(lambda at: 1 + batch / at if at > 0 else float("inf"))),
        steps=None if steps is None else banded(steps),
        examples=None if examples is None else banded(examples),
        hours=None if hours is None else banded(hours),
        usd=None if steps is None or price is None else banded(steps.times(price)),
        device_hours=None if worked is None else banded(worked),
        kilowatt_hours=None if worked is None or power is None else banded(worked.times(power)),
        regret=regret_at_price(
            batch=batch, critical_batch=critical.value, examples_per_step=asked.rate.at(critical.value)
        ),
        breaks=tuple(limit.kind.value for limit in allowed if not _meets(batch, limit)),
    )


def _to_target(asked: AskedPlan, batch: float) -> tuple[Carried | None, Carried | None]:
    if asked.plan is None:
        return None, None
    found = what_if(asked.plan, batch=batch, critical_batch=asked.critical_batch)
    return with_plan_error(found.steps, asked.plan_error), with_plan_error(found.examples, asked.plan_error)


def with_plan_error(found: Carried, error: LogError) -> Carried:
    """A multiple of the plan's steps with their own error besides; the two errors are taken as independent.

    Args:
        found: Carried through B_crit, as if the plan's steps were exact.
        error: Log error of the plan's steps; it is the measurement's.
    """
    if error.down == error.up == 0 or not found.both.value > 0:
        return found
    return Carried(_widened(found.statistical, error), found.model, _widened(found.both, error))


def _widened(found: Interval, error: LogError) -> Interval:
    down = math.log(found.value / found.low) if found.low > 0 else math.inf
    up = math.log(found.high / found.value) if found.high < math.inf else math.inf
    wide = LogError(max(down, 0.0), max(up, 0.0)).with_independent(error)
    return Interval(found.value, found.value * math.exp(-wide.down), found.value * math.exp(wide.up), found.level)


def usd_per_step(machines: Machines, batch: float) -> float | None:
    """Price of a step, devices and what else the run costs; None without a step time or a price.

    Args:
        machines: What it runs on.
        batch: In examples.
    """
    pace = machines.pace
    seconds = None if pace is None else pace.seconds(batch)
    if pace is None or seconds is None:
        return None
    devices = pace.usd_per_step(batch)
    besides = machines.usd_per_hour_besides * seconds / SECONDS_PER_HOUR
    if devices is None:
        return besides or None
    return devices + besides


def _meets(batch: float, limit: Limit) -> bool:
    return limit.low * (1 - limits.ROUNDING) <= batch <= limit.high * (1 + limits.ROUNDING)


def told_from(row: Row, others: Sequence[TimeAndMoney]) -> Row:
    """The row, told whether one of the others is both quicker and cheaper.

    Args:
        row: One batch.
        others: Of the batches of its table, its own among them or not.
    """
    hours, usd = ours = time_and_money(row)
    is_beaten = any(other[0] <= hours and other[1] <= usd and other != ours for other in others)
    return replace(row, is_pareto=not is_beaten)


def time_and_money(row: Row) -> TimeAndMoney:
    """Hours and USD of a row; where they are not known, its steps and examples as factors of the fewest."""
    if row.hours is not None and row.usd is not None:
        return row.hours.value, row.usd.value
    return row.steps_factor.value, row.examples_factor.value
