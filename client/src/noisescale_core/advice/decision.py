"""Raise, lower or keep the batch: by the odds that a change is cheaper, and by what it is expected to save."""

import math

from noisescale_core.advice.limited import Inside
from noisescale_core.advice.parts.parts import AnyDecision, DecisionWord, RateOff, Sureness
from noisescale_core.theory.expected_cost import Stake
from noisescale_core.theory.limits import Limit

CHANGES = ("increase", "decrease", "probably_increase", "probably_decrease")

WAIT_WHERE_TOO_HIGH, WAIT_WHERE_TOO_LOW = ("decrease", "probably_decrease"), ("probably_increase",)
"""Changes that are not said where the learning rate is far too high, or low."""

CERTAIN = 0.95
"""From here on a change is called sure."""

SURE = 0.8
"""Probability from which a change is advised without a "probably"."""

LIKELY = 0.6

LEAST_SAVING = 0.04
LEAST_FACTOR = 1.4
"""A change that saves less, or is smaller, is not worth the trouble: 1.4 × costs at most 3 %."""

TOO_CLOSE = 1.19
"""A quarter of a doubling: batches nearer than this are the same for every purpose."""

KEEP_REGRET = 0.125
"""A batch within 2 × of the best one costs at most this much more."""


def word_of(found: Stake, *, now: float, then: float, inside: Inside | None = None) -> DecisionWord:
    """What to do with the batch.

    Args:
        found: What the change puts at stake.
        now: The present batch, in examples.
        then: The batch to change to.
        inside: The limits, where there are any.
    """
    factor = max(then / now, now / then)
    is_larger = then > now
    if inside is not None and broken_limits(now, inside):
        # what the price says of a batch that breaks a limit does not matter
        return _moved(is_larger, is_sure=_is_beyond(now, inside))
    if found.probability >= SURE and found.saving >= LEAST_SAVING and factor >= LEAST_FACTOR:
        return _moved(is_larger, is_sure=True)
    if _regret(found, inside) <= KEEP_REGRET or factor < TOO_CLOSE:
        return "keep" if _regret(found, inside) <= KEEP_REGRET else "keep_for_now"
    is_likely = found.probability >= LIKELY and found.saving > 0
    return _moved(is_larger, is_sure=False) if is_likely else "keep_for_now"


def waits_for_the_rate(word: AnyDecision, rate: RateOff | None) -> bool:
    """Whether the learning rate comes before the batch: a change this way is less likely right than its odds say.

    Below the best rate φ is larger than at it, above it smaller (McCandlish et al. 2018, appendix C: φ falls with the
    temperature), so a rate that is far too high makes smaller batches look good, and one that is far too low larger
    ones. How often changes are right then is measured (`docs/learning_rate.md`): sure raises hold below the best rate.

    Args:
        word: What the odds say to do.
        rate: How far the learning rate is off; None where it is not, or nobody knows.
    """
    if rate is None:
        return False
    return word in (WAIT_WHERE_TOO_HIGH if rate.is_too_high else WAIT_WHERE_TOO_LOW)


def may_wait_for_the_rate(word: AnyDecision) -> bool:
    """Whether there are learning rates at which a decision waits.

    Args:
        word: What the odds say to do.
    """
    return word in (*WAIT_WHERE_TOO_HIGH, *WAIT_WHERE_TOO_LOW)


def sureness_of(word: DecisionWord, found: Stake, *, now: float, inside: Inside) -> Sureness | None:
    """The odds of a change as a word; None where the batch stays, and where a limit decides instead of the odds.

    Args:
        word: What to do.
        found: What the change puts at stake.
        now: The present batch, in examples.
        inside: The limits.
    """
    if word not in CHANGES or broken_limits(now, inside):
        return None
    return "sure" if found.probability >= CERTAIN else "likely" if found.probability >= SURE else "probably"


def _moved(is_larger: bool, *, is_sure: bool) -> DecisionWord:
    if is_sure:
        return "increase" if is_larger else "decrease"
    return "probably_increase" if is_larger else "probably_decrease"


def _regret(found: Stake, inside: Inside | None) -> float:
    """What the present batch costs more than the best one: inside the limits, where they bind."""
    if inside is not None and inside.choice.binding:
        return found.saving / (1 - found.saving) if found.saving < 1 else math.inf
    return found.present_regret


def broken_limits(batch: float, inside: Inside) -> list[Limit]:
    """Which limits a batch breaks, by the estimate of B_crit.

    Args:
        batch: In examples.
        inside: The limits.
    """
    return [limit for limit in inside.allowed if not limit.low <= batch <= limit.high]


def _is_beyond(batch: float, inside: Inside) -> bool:
    """Whether the batch breaks the limit wherever B_crit lies in its interval."""
    interval = inside.interval
    return interval is not None and not interval.low <= batch <= interval.high
