"""Raise, lower or keep the batch, or not enough evidence: from where the whole interval lies."""

import math

from noisescale_core.advice.decay import is_decayed
from noisescale_core.advice.limited import Inside
from noisescale_core.advice.parts import DecisionWord, Interval, RunSoFar
from noisescale_core.estimators.uncertainty import State
from noisescale_core.theory import trade_off

KEEP_REGRET = 0.125
"""A batch within 2 × of the best one costs at most this much more."""


def word_of(run: RunSoFar, best: Interval, found: Inside | None = None) -> DecisionWord:
    """Increase or decrease only where the whole interval lies on one side of the present batch.

    Args:
        run: As it stands, with a batch.
        best: Of the best batch at the price.
        found: The same inside the limits; None without limits.
    """
    batch = run.batch_size
    if batch is None or run.noise_scale.state is not State.RESOLVED or is_decayed(run):
        return "insufficient_evidence"
    interval = best if found is None or found.interval is None else found.interval
    if found is not None and found.choice.binding and found.present_regret <= KEEP_REGRET and _is_allowed(batch, found):
        # inside the limits a batch that is nearly as good as the limit's own is not worth a change
        return "keep"
    side = _side(batch, interval)
    if side != "insufficient_evidence":
        return side
    return "keep" if _costs_little(batch, interval) else "insufficient_evidence"


def _side(batch: float, interval: Interval) -> DecisionWord:
    if interval.low > batch:
        return "increase"
    return "decrease" if interval.high < batch else "insufficient_evidence"


def _costs_little(batch: float, interval: Interval) -> bool:
    ends = (interval.low, interval.high)
    if not all(0 < end < math.inf for end in ends):
        return False
    return max(trade_off.regret(batch=batch, best=end) for end in ends) <= KEEP_REGRET


def _is_allowed(batch: float, found: Inside) -> bool:
    return all(limit.low <= batch <= limit.high for limit in found.choice.binding)
