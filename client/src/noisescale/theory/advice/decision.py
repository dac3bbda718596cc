"""Raise, lower or keep the batch, or not enough evidence: from where the whole interval lies."""

import math

from noisescale.estimators.uncertainty import State
from noisescale.theory import trade_off
from noisescale.theory.advice.decay import is_decayed
from noisescale.theory.advice.limited import Inside
from noisescale.theory.advice.parts import DecisionWord, Interval, RunSoFar

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
    is_limited = found is not None and bool(found.choice.binding)
    if is_limited and _costs_little(batch, interval) and interval.low <= batch * 2 and interval.high >= batch / 2:
        # next to a limit, a batch that is as good as the limit's own is not worth a change
        return "keep" if _is_allowed(batch, found) else _side(batch, interval)
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


def _is_allowed(batch: float, found: Inside | None) -> bool:
    assert found is not None
    return all(limit.low <= batch <= limit.high for limit in found.choice.binding)
