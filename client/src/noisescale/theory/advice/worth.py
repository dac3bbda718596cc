"""What a step is worth, from the reader's words and what the run knows of its devices; or what is missing for it."""

import math
from dataclasses import dataclass

from noisescale.theory import prices
from noisescale.theory.advice.pace import step_line
from noisescale.theory.advice.parts import Preference, RunSoFar
from noisescale.theory.prices import ExchangeRate

SPLIT = 0.5
"""The preference that nothing stated stands for: steps and examples balanced."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why the price cannot be told.

    Attributes:
        text: What is missing, as a sentence.
        way_out: What to do about it.
    """

    text: str
    way_out: str


def worth_of(wish: Preference, run: RunSoFar) -> ExchangeRate | Missing | None:
    """The price of a step in the reader's words; None where nobody said one.

    Args:
        wish: The reader's words.
        run: Its devices and step times.

    Raises:
        ValueError: If a number is out of range.
    """
    if wish.examples_per_step is not None:
        return prices.worth_examples(wish.examples_per_step)
    if wish.preference is not None:
        return prices.from_preference(wish.preference)
    if wish.usd_per_hour_sooner is not None:
        return _of_an_hour(wish.usd_per_hour_sooner, run)
    return _of_step_times(run) if wish.fixed_hardware else None


def balanced_at(critical_batch: float) -> ExchangeRate:
    """What nothing stated stands for: the balanced price at the B_crit of now, as a number.

    Args:
        critical_batch: B_crit in examples.
    """
    said = "nobody said what a step is worth: steps and examples are balanced at the critical batch of now"
    return ExchangeRate(said, examples_per_step=critical_batch)


def _of_an_hour(usd: float, run: RunSoFar) -> ExchangeRate | Missing:
    price, devices, batch = run.usd_per_device_hour, run.num_devices, run.batch_size
    known = {"usd_per_device_hour": price, "num_devices": devices, "batch_size": batch}
    missing = [name for name, value in known.items() if not value]
    if not price or not devices or not batch:
        return Missing(
            f"An hour's worth becomes a price of steps by what the devices cost: {' and '.join(missing)} missing.",
            f"Pass {' and '.join(missing)} to noisescale.init(), or usd_per_device_hour= with the question.",
        )
    # r = (the hour in device-hours) × (examples a device puts through a step): the time of the step cancels
    return prices.from_device_prices(
        usd_per_hour_sooner=usd,
        usd_per_device_hour=price,
        step_seconds=1.0,
        examples_per_device_second=batch / devices,
    )


def _of_step_times(run: RunSoFar) -> ExchangeRate | Missing:
    line = step_line(run.spent)
    if line is None:
        return Missing(
            "fixed_hardware takes its price from the step times of two batch sizes, and the run has shown no line "
            "through two.",
            "Train a few hundred steps at another batch, or say what a step is worth (examples_per_step).",
        )
    if not 0 < line.overhead_seconds < math.inf:
        return Missing(
            "A step's time goes in proportion to its batch, so on these devices the smallest batch is the fastest.",
            "Use the smallest batch that fills the devices, or say what a step is worth (examples_per_step).",
        )
    return prices.on_fixed_hardware(
        overhead_seconds=line.overhead_seconds, seconds_per_example=line.seconds_per_example
    )
