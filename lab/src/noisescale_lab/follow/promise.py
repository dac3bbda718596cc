"""How much of the fall that plain gradient descent promised has come.

A step of SGD at rate ε promises the loss a fall of ε |G|², to first order. Near the best rate some of that comes; far
below it nearly all, and above it little, as the curvature takes it back.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEAST, MOST = 0.03, 1.2
"""Shares beyond which nothing more is told."""

LARGEST_ERROR = 0.35
"""Standard error of the fall, over the promise, above which nothing is said."""


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring steps.

    Attributes:
        num_steps: How many.
        loss: Mean training loss; None where none was logged.
        loss_error: Its standard error; infinite if unknown.
        promised: Σ ε |G|² over them; None where nothing was measured.
    """

    num_steps: float
    loss: float | None
    loss_error: float
    promised: float | None


def kept_promise(spans: Sequence[Span]) -> float | None:
    """Ln of the fall over the promise in the last half of the steps; None where the losses say too little.

    Args:
        spans: Since the start, oldest first.
    """
    if not spans:
        return None
    half, left = list[Span](), sum(one.num_steps for one in spans) / 2
    for one in reversed(spans):
        if left <= 0:
            break
        half.append(one)
        left -= one.num_steps
    last, first = half[0], half[-1]
    promises = [one.promised for one in half if one.promised is not None]
    if len(half) < 2 or len(promises) < len(half) or first.loss is None or last.loss is None:
        return None
    # from the middle of the first span to the middle of the last
    promised = math.fsum(promises) - (promises[0] + promises[-1]) / 2
    fall, error = first.loss - last.loss, math.hypot(first.loss_error, last.loss_error)
    if not (0 < promised < math.inf and math.isfinite(fall) and error <= LARGEST_ERROR * promised):
        return None
    return math.log(min(MOST, max(LEAST, fall / promised)))
