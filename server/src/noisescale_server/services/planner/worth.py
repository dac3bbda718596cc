"""What a step is worth in a planner's words: a preference, examples, an hour sooner, or the devices as they are."""

import math
from dataclasses import replace

from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.limits.worth import SPLIT, assumed, of_project
from noisescale_core.advice.question import Question, Worth
from noisescale_core.theory import prices
from noisescale_core.theory.cost import StepTime
from noisescale_core.theory.prices import ExchangeRate
from noisescale_server.services.platform.errors import refuse


def worth_of(wish: Worth, pace: Pace | None) -> ExchangeRate:
    """The price of a step: as said, or what is assumed where nothing is, as in a recommendation.

    Args:
        wish: The reader's words.
        pace: Time, devices and price of a step; None where nobody said.

    Raises:
        InvalidInput: Where the price needs devices, their price or step times that nobody said.
    """
    if isinstance(wish, Question) and wish.ways and wish.ways[0] in wish.project_says:
        return _of_project(wish, pace)
    if wish.examples_per_step is not None:
        return prices.worth_examples(wish.examples_per_step)
    if wish.usd_per_hour_sooner is not None and (pace is None or pace.hardware == "devices_with_the_batch"):
        return _of_an_hour(wish.usd_per_hour_sooner, pace)
    if wish.fixed_hardware or wish.usd_per_hour_sooner is not None:
        # on devices that stay an hour sooner is an hour less to pay: both go as the time
        return _of_step_times("usd_per_hour_sooner" if wish.usd_per_hour_sooner is not None else "fixed_hardware", pace)
    if wish.preference not in (None, SPLIT):
        return prices.from_preference(wish.preference)
    return assumed(_line_of(pace))


def _of_project(wish: Question, pace: Pace | None) -> ExchangeRate:
    """What the project says for all its tasks; where step times are to tell the price and do not, none is said."""
    if wish.preference is not None:
        return of_project(prices.from_preference(wish.preference))
    if wish.fixed_hardware and _line_of(pace) is None:
        return assumed(None)
    return of_project(worth_of(replace(wish, project_says={}), pace))


def _of_an_hour(usd: float, pace: Pace | None) -> ExchangeRate:
    devices, price = (None, None) if pace is None else (pace.num_devices, pace.usd_per_device_hour)
    if pace is None or not devices or not price:
        missing = [
            name
            for name, known in (("step_seconds", pace), ("num_devices", devices), ("usd_per_device_hour", price))
            if not known
        ]
        message = f"an hour's worth becomes a price of steps by what the devices cost: give {' and '.join(missing)}"
        raise refuse("usd_per_hour_sooner", message, usd)
    share = 1.0 if pace.spot is None else pace.spot.price_share
    # devices come with the batch, so the time of a step cancels: see `prices.from_device_prices`
    return prices.from_device_prices(
        usd_per_hour_sooner=usd,
        usd_per_device_hour=price * share,
        step_seconds=1.0,
        examples_per_device_second=pace.batch / devices,
    )


def _line_of(pace: Pace | None) -> StepTime | None:
    """How a step's time rises with its batch; None where it is not known, or names no best batch."""
    line = None if pace is None else pace.line
    return line if line is not None and 0 < line.overhead_seconds < math.inf else None


def _of_step_times(field: str, pace: Pace | None) -> ExchangeRate:
    line = _line_of(pace)
    if line is None:
        message = (
            "on the same devices a step's worth comes from step times at two batch sizes, where larger ones take "
            "longer, but less than in proportion: give overhead_seconds and seconds_per_example, or examples_per_step"
        )
        raise refuse(field, message)
    return prices.on_fixed_hardware(
        overhead_seconds=line.overhead_seconds, seconds_per_example=line.seconds_per_example
    )
