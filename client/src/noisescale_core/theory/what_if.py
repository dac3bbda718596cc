"""What another batch would do to the plan that one has: steps, examples, hours, money, each with its interval.

Needs no S_min: the plan says how many steps the target takes at the present batch, B_crit how they change
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11). The price and the time of a step are taken as exact.
"""

from dataclasses import dataclass

from noisescale_core.theory.cost import SECONDS_PER_HOUR, Rates
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.intervals import Carried, Estimate
from noisescale_core.theory.trade_off import examples_factor, steps_factor


@dataclass(frozen=True, slots=True)
class RestOfPlan:
    """What is left to do at the present batch.

    Attributes:
        steps: Optimizer steps to the target.
        batch: B in examples.
    """

    steps: float
    batch: float

    def __post_init__(self) -> None:
        """Refuse what plans nothing.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive("a plan that is done has nothing to predict", steps=self.steps)
        require_positive("a batch holds at least one example", batch=self.batch)


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the new batch would run on.

    Attributes:
        step_seconds: Seconds of a step at the new batch.
        num_devices: Devices that are paid for.
        rates: Prices; None without.
    """

    step_seconds: float
    num_devices: int
    rates: Rates | None = None

    def __post_init__(self) -> None:
        """Refuse what runs nothing.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive("time a few steps", step_seconds=self.step_seconds)
        require_positive("count the devices that are paid for", num_devices=self.num_devices)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the plan takes at another batch.

    Attributes:
        batch: In examples.
        steps: Optimizer steps.
        examples: Examples.
        hours: Wall time; None without hardware.
        device_hours: Devices × hours; None without hardware.
        usd: Money; None without rates.
        kilowatt_hours: Energy; None where the power is not known.
    """

    batch: float
    steps: Carried
    examples: Carried
    hours: Carried | None
    device_hours: Carried | None
    usd: Carried | None
    kilowatt_hours: Carried | None


def what_if(plan: RestOfPlan, *, batch: float, critical_batch: Estimate, hardware: Hardware | None = None) -> WhatIf:
    """What the plan takes at another batch, every number with its statistical, model and whole interval.

    Args:
        plan: What is left to do at the present batch.
        batch: The other batch, in examples.
        critical_batch: B_crit of what is left, in examples.
        hardware: What the other batch runs on; None for steps and examples alone.

    Raises:
        DomainError: If the batch is not positive.
    """
    require_positive("a batch holds at least one example", batch=batch)

    def steps_at(critical: float) -> float:
        return plan.steps * steps_factor(from_batch=plan.batch, to_batch=batch, critical_batch=critical)

    def examples_at(critical: float) -> float:
        factor = examples_factor(from_batch=plan.batch, to_batch=batch, critical_batch=critical)
        return plan.steps * plan.batch * factor

    steps, examples = critical_batch.through(steps_at), critical_batch.through(examples_at)
    if hardware is None:
        return WhatIf(batch, steps, examples, None, None, None, None)
    hours = steps.times(hardware.step_seconds / SECONDS_PER_HOUR)
    rates, num_devices = hardware.rates, hardware.num_devices
    power = None if rates is None else rates.kilowatts_per_device
    hourly = None if rates is None else num_devices * rates.usd_per_device_hour + rates.usd_per_hour_besides
    return WhatIf(
        batch=batch,
        steps=steps,
        examples=examples,
        hours=hours,
        device_hours=hours.times(num_devices),
        usd=None if hourly is None else hours.times(hourly),
        kilowatt_hours=None if power is None else hours.times(num_devices * power),
    )
