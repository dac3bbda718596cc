"""The path of a run whose batch and learning rate change on the way, as if the present ones had held from the start.

How far the parameters got is one number of the whole path, and the lengths of its updates go with the settings of the
moment. A rate is judged by the updates that it would have made: those of each stretch are scaled to the present rate,
and for SGD to the noise of the present batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.estimators.path import Path
from noisescale_core.estimators.promise import LARGEST_ERROR
from noisescale_core.theory.learning_rate import RuleFamily, family_of

LEAST, MOST = 0.03, 1.2
"""Shares beyond which nothing more is told."""

LEAST_SHARE = 0.05
"""Of an update's square that stays at any batch: the means of the two terms of few steps may take more away."""


# How much of the fall that the updates promised has come.
#
# An update u promises the loss a fall of -u · G, to first order: a step of SGD at rate ε one of ε |G|². Near the best
# rate some of that comes; far below it nearly all, and above it little, as the curvature takes it back.


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring steps.

    Attributes:
        num_steps: How many.
        loss: Mean training loss; None where none was logged.
        loss_error: Its standard error; infinite if unknown.
        promised: -Σ u · G over them, without the noise of the batch; None where nothing was measured.
        promised_variance: Of that sum, as some updates only were looked at, and each with the noise of a batch.
    """

    num_steps: float
    loss: float | None
    loss_error: float
    promised: float | None
    promised_variance: float = 0.0


def kept_promise(spans: Sequence[Span]) -> float | None:
    """Ln of the fall over the promise in the last half of the steps; None where the errors of either are too large.

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
    of_promise = math.sqrt(math.fsum(one.promised_variance for one in half))
    fall, of_fall = first.loss - last.loss, math.hypot(first.loss_error, last.loss_error)
    is_known = 0 < promised < math.inf and math.isfinite(fall)
    if not (is_known and max(of_fall, of_promise) <= LARGEST_ERROR * promised):
        return None
    return math.log(min(MOST, max(LEAST, fall / promised)))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Updates between two changes.

    Attributes:
        num_updates: How many.
        batch: In examples.
        rate_factor: Of the base learning rate, in any unit that all stretches share.
        sum_sq_norm: Σ |u|² over them, without weight decay.
        trace_cov: Mean estimate of tr Σ over them; None where it is not known.
        grad_sq_norm: Mean estimate of |G|².
    """

    num_updates: float
    batch: float
    rate_factor: float
    sum_sq_norm: float
    trace_cov: float | None = None
    grad_sq_norm: float | None = None


def path_at(
    stretches: Sequence[Stretch],
    *,
    sq_distance: float,
    momentum: float,
    optimizer: str | None,
    batch: float,
    rate_factor: float,
    variance: float = 0.0,
) -> Path | None:
    """The path as if all updates had been made with one batch and base rate; None without updates.

    Args:
        stretches: Since θ_0.
        sq_distance: |θ - θ_0|² now.
        momentum: Share of an update that the next one repeats.
        optimizer: Class name.
        batch: In examples.
        rate_factor: Of the base learning rate, in the stretches' unit.
        variance: Of Σ |u|², as some updates only were looked at.
    """
    if not stretches:
        return None
    is_sgd = family_of(optimizer) is RuleFamily.SGD
    made = math.fsum(one.sum_sq_norm for one in stretches)
    total = math.fsum(
        one.sum_sq_norm * (rate_factor / one.rate_factor) ** 2 * (_of_batch(one, batch) if is_sgd else 1.0)
        for one in stretches
    )
    scale = total / made if made > 0 else 1.0
    return Path(math.fsum(one.num_updates for one in stretches), total, variance * scale * scale, sq_distance, momentum)


def _of_batch(one: Stretch, batch: float) -> float:
    """|g|² at another batch over that of the stretch; an update of Adam is as long whatever the noise."""
    noise, signal = one.trace_cov, one.grad_sq_norm
    if one.batch == batch or noise is None or signal is None or not noise > 0:
        return 1.0
    then, now = max(signal, 0.0) + noise / batch, max(signal, 0.0) + noise / one.batch
    return max(LEAST_SHARE, then / now)
