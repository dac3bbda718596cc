"""What the limits and the devices make of an advice, where that is not what the reader might expect."""

import math
from collections.abc import Iterator

from noisescale_core.advice.limited import Inside
from noisescale_core.advice.limits.predictions import Predictions
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Caution, RunSetting
from noisescale_core.advice.question import Limits
from noisescale_core.advice.words import of_a_run as wording

LONGER = 1.05
"""Less is within what step times vary by."""


def cautions(run: RunSetting, given: Limits, found: Inside | None, foretold: Predictions | None) -> tuple[Caution, ...]:
    """What to know of the limits before following the advice.

    Args:
        run: As it stands.
        given: What limits it.
        found: The best batch inside the limits; None where they cannot be judged.
        foretold: The rest of the plan; None without one.
    """
    return (*_without_effect(given), *_may_be_missed(run, found), *_takes_longer(foretold))


def _without_effect(given: Limits) -> Iterator[Caution]:
    if given.max_micro_batches is not None and given.examples_per_device is None:
        text = "max_micro_batches limits nothing until examples_per_device says how many examples a micro-batch holds."
        yield Caution("no_effect", text)
    besides = (given.interruptions_per_device_hour, given.restart_hours, given.checkpoint_hours)
    if given.spot_price_share is None and any(besides):
        yield Caution(
            "no_effect", "Interruptions are ignored unless spot_price_share says what interruptible devices cost."
        )


def _may_be_missed(run: RunSetting, found: Inside | None) -> Iterator[Caution]:
    if found is None or found.interval is None:
        return
    is_deadline = any(limit.is_deadline and limit.low > 0 for limit in found.allowed)
    if is_deadline and found.interval.high == math.inf:
        text = "no batch meets the deadline if the critical batch lies at the upper end of its interval."
        yield Caution("may_be_missed", f"The plan rests on an estimate: {text}")
    elif found.interval.low == 0:
        text = "no batch is small enough for the limits if the critical batch lies at an end of its interval."
        yield Caution("may_be_missed", f"The plan rests on an estimate: {text}")


def _takes_longer(foretold: Predictions | None) -> Iterator[Caution]:
    now = next((one for one in foretold.batches if one.is_present), None) if foretold else None
    then = next((one for one in foretold.batches if one.is_recommended), None) if foretold else None
    if now is None or then is None or now.hours is None or then.hours is None or now.num_devices != then.num_devices:
        return
    if then.batch_size > now.batch_size and then.hours.value > LONGER * now.hours.value:
        text = (
            f"On the same devices a batch of {wording.batch(then.batch_size)} takes "
            f"{wording.banded(then.hours)} h for the rest of the plan instead of {number(now.hours.value)} h: "
            "fewer steps, each of them longer. Where only time and money count, ask with fixed_hardware."
        )
        yield Caution("takes_longer", text)
