"""Time, devices, money and energy of a run at any batch size.

T = S(B) t(B), device-hours = n T / 3600, and everything else is a price on one of the two. S(B) is the trade-off of
McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11.
"""

from dataclasses import dataclass

from noisescale_core.theory.domain import require_not_negative, require_positive

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

    def seconds(self, batch: float) -> float:
        """Seconds of one step.

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive("a batch holds at least one example", batch=batch)
        return self.overhead_seconds + self.seconds_per_example * batch


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
