"""Time, devices, money and energy of a run at any batch size.

T = S(B) t(B), device-hours = n T / 3600, and everything else is a price on one of the two. S(B) is the trade-off of
McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.trade_off import TradeOff

SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step on fixed devices takes t = α + β B seconds.

    Attributes:
        overhead_seconds: α, seconds: synchronisation, the optimizer, launches.
        seconds_per_example: β, seconds for one more example in the global batch.
    """

    overhead_seconds: float
    seconds_per_example: float

    def __post_init__(self) -> None:
        """Refuse what takes no time.

        Raises:
            DomainError: If α is negative or β not positive.
        """
        require_not_negative("measure step times at two batch sizes", overhead_seconds=self.overhead_seconds)
        require_positive("measure step times at two batch sizes", seconds_per_example=self.seconds_per_example)

    @classmethod
    def from_two(cls, *, small: float, small_seconds: float, big: float, big_seconds: float) -> "StepTime":
        """The line through two measured steps.

        Args:
            small: Batch of the one, in examples.
            small_seconds: Seconds that it took.
            big: Batch of the other.
            big_seconds: Seconds that it took.

        Raises:
            DomainError: If the batches do not differ, or the line falls or starts below zero.
        """
        require_positive("a batch holds at least one example", small=small, big=big)
        if not small < big:
            raise DomainError(f"big must exceed small, got {big:g} and {small:g}: time two different batches")
        slope = (big_seconds - small_seconds) / (big - small)
        overhead = small_seconds - slope * small
        if slope <= 0 or overhead < 0:
            raise DomainError(
                f"big_seconds must exceed small_seconds by no more than in proportion, got {big_seconds:g} and "
                f"{small_seconds:g}: average over more steps"
            )
        return cls(overhead, slope)

    def seconds(self, batch: float) -> float:
        """Seconds of one step.

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive("a batch holds at least one example", batch=batch)
        return self.overhead_seconds + self.seconds_per_example * batch

    def fastest_batch(self, critical_batch: float) -> float:
        """√(α B_crit / β): where S(B) (α + β B) is least, on these devices.

        0 without an overhead: then the smallest batch is the fastest, and the devices would idle.

        Args:
            critical_batch: B_crit in examples.

        Raises:
            DomainError: If B_crit is not positive.
        """
        require_positive("fit it from a sweep, or estimate it", critical_batch=critical_batch)
        return math.sqrt(self.overhead_seconds / self.seconds_per_example) * math.sqrt(critical_batch)


@dataclass(frozen=True, slots=True)
class Rates:
    """What devices and hours cost.

    Attributes:
        usd_per_device_hour: Price of one device for one hour.
        usd_per_hour_besides: Price of an hour of the run besides its devices: CPU simulators, storage.
        kilowatts_per_device: Mean power of one device with its share of the machine.
    """

    usd_per_device_hour: float
    usd_per_hour_besides: float = 0.0
    kilowatts_per_device: float | None = None

    def __post_init__(self) -> None:
        """Refuse negative prices.

        Raises:
            DomainError: If a rate is negative.
        """
        require_not_negative(
            "0 where it is free",
            usd_per_device_hour=self.usd_per_device_hour,
            usd_per_hour_besides=self.usd_per_hour_besides,
        )
        if self.kilowatts_per_device is not None:
            require_not_negative("None where it is not known", kilowatts_per_device=self.kilowatts_per_device)


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run takes.

    Attributes:
        steps: Optimizer steps.
        examples: Examples.
        seconds: Wall time.
        device_hours: Devices × hours.
        usd: Money, or None without rates.
        kilowatt_hours: Energy, or None where the power is not known.
    """

    steps: float
    examples: float
    seconds: float
    device_hours: float
    usd: float | None
    kilowatt_hours: float | None


def cost_of_run(
    trade_off: TradeOff, *, batch: float, step_seconds: float, num_devices: int, rates: Rates | None = None
) -> RunCost:
    """What a run to the target takes at a constant batch.

    Args:
        trade_off: Steps and examples to the target.
        batch: B in examples.
        step_seconds: Seconds of a step at this batch on these devices.
        num_devices: n.
        rates: Prices; None for a cost without money and energy.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("time a few steps", step_seconds=step_seconds)
    require_positive("count the devices that are paid for", num_devices=num_devices)
    steps = trade_off.steps(batch)
    seconds = steps * step_seconds
    hours = seconds / SECONDS_PER_HOUR
    device_hours = num_devices * hours
    power = None if rates is None else rates.kilowatts_per_device
    return RunCost(
        steps=steps,
        examples=trade_off.examples(batch),
        seconds=seconds,
        device_hours=device_hours,
        usd=None if rates is None else rates.usd_per_device_hour * device_hours + rates.usd_per_hour_besides * hours,
        kilowatt_hours=None if power is None else device_hours * power,
    )


def affordable_seconds(*, usd: float, num_devices: int, rates: Rates) -> float:
    """How long a budget pays for devices that one has: on fixed devices a budget is a deadline.

    Args:
        usd: The budget.
        num_devices: Devices that are paid for.
        rates: Prices.

    Raises:
        DomainError: If the budget is not positive, or nothing costs anything.
    """
    require_positive("leave the budget out where there is none", usd=usd, num_devices=num_devices)
    usd_per_hour = num_devices * rates.usd_per_device_hour + rates.usd_per_hour_besides
    require_positive("a budget limits nothing where hours are free", usd_per_hour=usd_per_hour)
    return usd / usd_per_hour * SECONDS_PER_HOUR


def affordable_examples(*, usd: float, usd_per_device_hour: float, examples_per_device_second: float) -> float:
    """How many examples a budget pays for where devices are added with the batch, each at its own speed.

    Args:
        usd: The budget.
        usd_per_device_hour: Price of one device for one hour.
        examples_per_device_second: Examples that one device works through in a second.

    Raises:
        DomainError: If one of them is not positive.
    """
    require_positive("leave the budget out where there is none", usd=usd)
    require_positive("a budget limits nothing where devices are free", usd_per_device_hour=usd_per_device_hour)
    require_positive("measure it over a few steps", examples_per_device_second=examples_per_device_second)
    return usd / usd_per_device_hour * SECONDS_PER_HOUR * examples_per_device_second


def improvement(*, before: float, after: float) -> float:
    """How many times less: before / after, for hours or for money.

    Args:
        before: The baseline's.
        after: In the same unit.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("compare what reached the same target", before=before, after=after)
    return before / after
