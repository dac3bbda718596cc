"""What a step is worth, from the reader's words and what the run knows of its devices; or what is missing for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noisescale_core.advice.defaults import SAID_OF
from noisescale_core.advice.limits.pace import is_flat, stay, step_line, timed_batches
from noisescale_core.advice.question import Question
from noisescale_core.theory import prices
from noisescale_core.theory.cost import StepTime
from noisescale_core.theory.prices import ExchangeRate

if TYPE_CHECKING:
    from noisescale_core.advice.parts.parts import RunSetting


FIXED_HARDWARE = "The price for fixed_hardware comes"

STEPS_TO_TIME = 200
"""Steps of another batch after which runs of a few thousand have three stretches of it."""

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


def worth_of(asked: Question, run: "RunSetting") -> ExchangeRate | Missing:
    """The price of a step in the caller's words, or what is assumed where they say none or have no preference.

    Args:
        asked: The caller's words, and whether devices are interruptible.
        run: Its devices and step times.

    Raises:
        DomainError: If a number is out of range.
    """
    if asked.ways and asked.ways[0] in asked.project_says:
        return _of_project(asked, run)
    if asked.examples_per_step is not None:
        return prices.worth_examples(asked.examples_per_step)
    if asked.usd_per_hour_sooner is not None and stay(run, asked):
        # an hour sooner is an hour less to pay: both go as the time
        return _of_step_times(
            run, "On a fixed number of devices an hour sooner is an hour less to pay: its price comes"
        )
    if asked.usd_per_hour_sooner is not None:
        return _of_an_hour(
            asked.usd_per_hour_sooner, run, 1.0 if asked.spot_price_share is None else asked.spot_price_share
        )
    if asked.fixed_hardware:
        return _of_step_times(run)
    if asked.preference not in (None, SPLIT):
        return prices.from_preference(asked.preference)
    timed = timed_batches(run.spent)
    told = isinstance(_of_timed_batches(run, timed), ExchangeRate)
    return assumed(step_line(timed) if told else None)


def is_assumed(asked: Question) -> bool:
    """Whether the caller left the price open: no words, or no preference for steps or examples.

    What a project says for all its runs is assumed, too.

    Args:
        asked: The caller's words.
    """
    return not asked.is_stated or asked.preference == SPLIT or asked.ways[0] in asked.project_says


def of_project(rate: ExchangeRate) -> ExchangeRate:
    """The same price, said to be the project's.

    Args:
        rate: As a reader would have said it.
    """
    return replace(rate, said=f"assumes that {rate.said} {SAID_OF}")


def _of_project(asked: Question, run: "RunSetting") -> ExchangeRate:
    """The price that the project says for all its runs; where step times are to tell it and do not, none is said."""
    if asked.preference is not None:
        return of_project(prices.from_preference(asked.preference))
    said = worth_of(replace(asked, project_says={}), run)
    return assumed(None) if isinstance(said, Missing) else of_project(said)


def assumed(line: StepTime | None) -> ExchangeRate:
    """What the devices say of the price where two batches were timed, else steps and examples balanced.

    Args:
        line: How a step's time rises with its batch; None where that names no best batch.
    """
    if line is not None:
        timed = prices.on_fixed_hardware(
            overhead_seconds=line.overhead_seconds, seconds_per_example=line.seconds_per_example
        )
        return replace(timed, said=f"assumes that the devices stay as they are: {timed.said}")
    said = "assumes that time and data matter equally"
    return replace(prices.from_preference(SPLIT), said=said)


def _of_an_hour(usd: float, run: "RunSetting", price_share: float) -> ExchangeRate | Missing:
    price, devices, batch = run.usd_per_device_hour, run.num_devices, run.batch_size
    known = {"usd_per_device_hour": price, "num_devices": devices, "batch_size": batch}
    missing = [name for name, value in known.items() if not value]
    if not price or not devices or not batch:
        return Missing(
            f"An hour's worth becomes a price of steps by what the devices cost: {' and '.join(missing)} missing.",
            f"Pass {' and '.join(missing)} to noisescale.init(), or usd_per_device_hour= with the question.",
        )
    # interruptions make every hour longer, those saved and those paid, so they cancel
    # r = (the hour in device-hours) × (examples a device puts through a step): the time of the step cancels
    return prices.from_device_prices(
        usd_per_hour_sooner=usd,
        usd_per_device_hour=price * price_share,
        step_seconds=1.0,
        examples_per_device_second=batch / devices,
    )


def _of_step_times(run: "RunSetting", what: str = FIXED_HARDWARE) -> ExchangeRate | Missing:
    return _of_timed_batches(run, timed_batches(run.spent), what)


def _of_timed_batches(
    run: "RunSetting", timed: Sequence[tuple[float, float]], what: str = FIXED_HARDWARE
) -> ExchangeRate | Missing:
    line = step_line(timed)
    if len(timed) < 2:
        return Missing(
            f"{what} from the step times of two batch sizes, and the run has timed {'one' if timed else 'none'}.",
            f"Train {STEPS_TO_TIME:,} steps or more at another batch, or say what a step is worth (examples_per_step).",
        )
    sizes = f"{timed[0][0]:,.0f} and {timed[-1][0]:,.0f} {run.example}s"
    if is_flat(timed):
        return Missing(
            f"Steps took no longer at the larger of the batches that the run has used ({sizes}), so on these devices "
            "larger batches look free, and their step times name no best one.",
            "Train some steps at a batch that fills the devices, or say what a step is worth (examples_per_step).",
        )
    if line is None or not 0 < line.overhead_seconds < math.inf:
        return Missing(
            f"A step's time goes in proportion to its batch or faster ({sizes}), so on these devices the smallest "
            "batch is the fastest.",
            "Use the smallest batch that fills the devices, or say what a step is worth (examples_per_step).",
        )
    return prices.on_fixed_hardware(
        overhead_seconds=line.overhead_seconds, seconds_per_example=line.seconds_per_example
    )
