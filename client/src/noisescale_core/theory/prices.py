"""What an optimizer step is worth: the exchange rate r, asked for in plain words.

A noise scale alone recommends no batch size: B = √(r φ), and r is the reader's to say. Minimising c_S S + c_E E, with
c_S the price of a step and c_E that of an example, is minimising r S + E with r = c_S / c_E examples per step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.6 at a constant batch). Every way of saying it is one function
here, and all are free of units: in tokens instead of sequences r and B_crit grow alike, so the same batch is chosen.
"""

import math
from dataclasses import dataclass, replace

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.intervals import Estimate
from noisescale_core.theory.trade_off import best_batch_estimate, exchange_rate

SECONDS_PER_HOUR = 3_600
LEAST_SHOWN_USD = 0.001


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """r, either a number of examples per step or a multiple of B_crit, with the words that it was said in.

    Attributes:
        said: What the reader said, as a sentence.
        examples_per_step: r in examples per step; None where it was said relative to B_crit.
        preference: Weight of log steps against log examples; None where r is a number.
    """

    said: str
    examples_per_step: float | None = None
    preference: float | None = None

    def __post_init__(self) -> None:
        """Refuse what says nothing or two things.

        Raises:
            DomainError: Unless exactly one of the two is given, inside its range.
        """
        if (self.examples_per_step is None) == (self.preference is None):
            raise DomainError(
                "an exchange rate needs one of examples_per_step and preference: use a function of prices"
            )
        if self.examples_per_step is not None:
            require_positive("1 values a step like one example", examples_per_step=self.examples_per_step)
        if self.preference is not None:
            exchange_rate(preference=self.preference, critical_batch=1.0)

    def at(self, critical_batch: float) -> float:
        """The r in examples per step, for a critical batch in examples.

        Args:
            critical_batch: B_crit; only a preference needs it.

        Raises:
            DomainError: If B_crit is not positive.
        """
        # of each value that B_crit may have: the call takes longer than the rest
        if not 0 < critical_batch < math.inf:
            require_positive("an unresolved noise scale prices nothing", critical_batch=critical_batch)
        if self.examples_per_step is not None:
            return self.examples_per_step
        assert self.preference is not None
        return exchange_rate(preference=self.preference, critical_batch=critical_batch)

    def in_units(self, units_per_example: float) -> "ExchangeRate":
        """The same price where batches are counted in units, such as tokens: r in units per step.

        Args:
            units_per_example: How many units make one example.

        Raises:
            DomainError: If the count is not positive.
        """
        require_positive("1 where units are examples", units_per_example=units_per_example)
        if self.examples_per_step is None:
            return self
        return replace(self, examples_per_step=self.examples_per_step * units_per_example)

    def recommended_batch(self, critical_batch: Estimate) -> Estimate:
        """The best batch at this price, with its errors.

        At a number of examples per step it has half the log error of B_crit. A preference moves its price with B_crit,
        so the batch B_crit λ / (1 - λ) has the whole; state the price once, `stated_at`, to have half.

        Args:
            critical_batch: B_crit in examples.
        """
        if self.examples_per_step is not None:
            return best_batch_estimate(critical_batch, examples_per_step=self.examples_per_step)
        assert self.preference is not None
        return critical_batch.to_power(1, factor=self.preference / (1 - self.preference))

    def stated_at(self, critical_batch: float) -> "ExchangeRate":
        """The price as a number, exact from now on: what a preference stands for at this B_crit.

        Args:
            critical_batch: B_crit in examples.

        Raises:
            DomainError: If B_crit is not positive.
        """
        return replace(self, examples_per_step=self.at(critical_batch), preference=None)


def worth_examples(examples: float) -> ExchangeRate:
    """One optimizer step less is worth this many more examples.

    Args:
        examples: r itself.

    Raises:
        DomainError: If it is not positive.
    """
    return ExchangeRate(f"a step saved is worth {examples:g} examples", examples_per_step=examples)


def from_preference(preference: float) -> ExchangeRate:
    """Between fewest examples (0) and fewest steps (1): λ of λ log S + (1 - λ) log E.

    Args:
        preference: λ; 0.5 values a per cent of steps like a per cent of examples, so B = B_crit.

    Raises:
        DomainError: Unless 0 < preference < 1.
    """
    odds = math.sqrt(exchange_rate(preference=preference, critical_batch=1.0))
    return ExchangeRate(f"1 % of the steps is worth {odds:.3g} % of the examples", preference=preference)


def from_costs(*, usd_per_step: float, usd_per_example: float) -> ExchangeRate:
    """A step costs so much whatever its batch, and an example so much whatever its step.

    Args:
        usd_per_step: c_S: waiting, synchronisation, everything that a step costs besides its examples.
        usd_per_example: c_E: the compute of one example.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("use a preference where one of them is not known", usd_per_step=usd_per_step)
    require_positive("use a preference where one of them is not known", usd_per_example=usd_per_example)
    return ExchangeRate(
        f"a step costs {_price(usd_per_step)} and an example {_price(usd_per_example)}",
        examples_per_step=usd_per_step / usd_per_example,
    )


def _price(usd: float) -> str:
    return f"{usd:.4g} USD" if usd >= LEAST_SHOWN_USD else f"{1e6 * usd:.4g} USD per million"


def from_device_prices(
    *, usd_per_hour_sooner: float, usd_per_device_hour: float, step_seconds: float, examples_per_device_second: float
) -> ExchangeRate:
    """Devices are added with the batch, so a step takes the same time whatever its batch, and more devices cost more.

    c_S = usd_per_hour_sooner t / 3600 and c_E = usd_per_device_hour / (3600 v): r = (what an hour sooner is worth, in
    device-hours) × t v, and t v is the number of examples that one device puts through a step.

    Args:
        usd_per_hour_sooner: What it is worth to the reader that the result comes one hour sooner.
        usd_per_device_hour: Price of one device for one hour.
        step_seconds: t, seconds of one optimizer step.
        examples_per_device_second: v, examples that one device works through in a second.

    Raises:
        DomainError: If one of them is not positive.
    """
    require_positive(
        "0 would mean that time does not count: the smallest batch", usd_per_hour_sooner=usd_per_hour_sooner
    )
    require_positive("use a preference where there is no price", usd_per_device_hour=usd_per_device_hour)
    require_positive(
        "measure it over a few steps",
        step_seconds=step_seconds,
        examples_per_device_second=examples_per_device_second,
    )
    rate = from_costs(
        usd_per_step=usd_per_hour_sooner * step_seconds / SECONDS_PER_HOUR,
        usd_per_example=usd_per_device_hour / (SECONDS_PER_HOUR * examples_per_device_second),
    )
    said = f"an hour sooner is worth {usd_per_hour_sooner:g} USD, a device-hour costs {usd_per_device_hour:g} USD"
    return replace(rate, said=said)


def on_fixed_hardware(*, overhead_seconds: float, seconds_per_example: float) -> ExchangeRate:
    """The devices are what they are, and a step takes α + β B seconds: time and money agree, r = α / β.

    The time of a run is α S + β E, and its money the same times the price of the devices, so no price is needed.

    Args:
        overhead_seconds: α, what a step takes besides its examples: communication, the optimizer, launches.
        seconds_per_example: β, what one more example in the global batch adds.

    Raises:
        DomainError: If β is not positive, or α not: without an overhead the smallest batch is the fastest.
    """
    require_positive(
        "steps without overhead are fastest at the smallest batch: state a price by another function",
        overhead_seconds=overhead_seconds,
        seconds_per_example=seconds_per_example,
    )
    return ExchangeRate(
        f"a step takes {overhead_seconds:g} s and {seconds_per_example:g} s more for each example",
        examples_per_step=overhead_seconds / seconds_per_example,
    )
