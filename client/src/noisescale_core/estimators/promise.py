"""The fall of the loss that updates promise to first order, -Σ u · G, and how much of it has come.

G is the gradient of the loss itself, of which a step knows only the mean ḡ over its examples. Most optimizers' updates
are u = -ε D⁻¹ (a + b g), with g the gradient that the optimizer is given, a what it remembers of past steps (momentum,
an L2 penalty), D what it divides by, and b a number. -u · ḡ holds the noise of ḡ twice, in u and in ḡ, so it is too
large by ε b tr(D⁻¹ Σ) / N, most often by a multiple of the truth. But given the past a and D are constants, so

    -E u · G = ε [ aᵀ D⁻¹ E ḡ + b GᵀD⁻¹G ],

and of the last term two squared norms give an unbiased estimate, of the step's mean gradient and of a small batch's.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Literal, NamedTuple

from noisescale_core.estimators.path import Promised, Reading, between


class KeptShare(Reading):
    """The fall of the loss over the promise: near 1 far below the best learning rate, small above it."""

    __slots__ = ()


LARGEST_ERROR = 0.35
"""Standard error of the fall, and of the promise, over the promise, above which no share is said."""

FEWEST_MEANS = 4
"""Losses at each end of the last half, below which their scatter is not known."""

WhyNoShare = Literal["no_promise", "no_loss", "too_few", "too_noisy"]


class LossMoment(NamedTuple):
    """The training losses up to a step, as sums since some earlier one.

    Attributes:
        step: The last one that is in the sums.
        num_losses: Losses that were logged.
        total: Σ of them.
    """

    step: int
    num_losses: float
    total: float


class PromiseMoment(NamedTuple):
    """What updates up to a step have promised, since some earlier one.

    Attributes:
        step: Whose update was the last one that was looked at.
        promised: By then.
    """

    step: int
    promised: Promised


def scale_of(given: float, big: float) -> float | None:
    """c, where the gradient that the optimizer is given is c times the mean gradient over the step's examples.

    It was clipped, or the loss is a sum.

    Args:
        given: Squared norm of the gradient that the optimizer is given.
        big: Of the mean gradient.

    Returns:
        None where there is no gradient, or one that is not finite.
    """
    return math.sqrt(given / big) if 0 < given < math.inf and 0 < big < math.inf else None


def signal_of_one(big: float, small: float, share: float) -> float:
    """Unbiased GᵀD⁻¹G from the squared norms of the mean gradient and of what one small batch adds to it.

    E|ḡ|² = |G|² + tr(Σ)/N, and of the small batch of p N examples E|s/p|² = |G|² + tr(Σ)/(p N), in any metric that does
    not depend on the noise. All small batches would halve the variance of the noise in it.

    Args:
        big: |ḡ|².
        small: |s|² of the part s = p g_k of ḡ.
        share: p of its examples in the step's.

    Source: McCandlish et al. 2018, arXiv:1812.06162, appendix A.1, with one small batch.
    """
    return (big - small / share) / (1 - share)


def promised_fall(*, rate: float, past: float, scale: float, signal: float) -> float:
    """The fall -u · G of the mean loss that one update promises, without the noise of its batch.

    Args:
        rate: ε of the first group of parameters.
        past: ε aᵀD⁻¹g of the gradient g that the optimizer is given, each group with its own rate.
        scale: c, g over the mean gradient.
        signal: Unbiased estimate of b GᵀD⁻¹G, groups weighed by their rates over ε.

    Source: see the head of this file.
    """
    return past / scale + rate * scale * signal


def stretch_of_promises(*, before: float | None, now: float, num_between: int) -> Promised:
    """The updates after one that was looked at, up to the next that was.

    Those in between count as the mean of both, which has no bias where the promise is a line in between. A look
    scatters by the noise of its batch as well, so both looks' scatter counts for all of the updates.

    Args:
        before: Promise of the update that was looked at before; None before the first.
        now: Of this one.
        num_between: Updates in between.
    """
    if before is None:
        return Promised(1, now, 0.0)
    num_updates = num_between + 1
    scatter = (now - before) ** 2 / 2
    return Promised(num_updates, now + num_between * (now + before) / 2, num_updates * num_updates * scatter)


def kept_share(losses: Sequence[LossMoment], promises: Sequence[PromiseMoment]) -> KeptShare | WhyNoShare:
    """The share of the promise that came over the last half of the steps.

    The loss fell from its mean over the first quarter of that half to that over the last quarter; what was promised in
    between is taken from the middle of the one to the middle of the other. Losses scatter about a straight line in each
    quarter, which gives their errors.

    Args:
        losses: Oldest first.
        promises: Oldest first.

    Returns:
        The share, or why there is none.
    """
    if not promises:
        return "no_promise"
    if not losses or losses[-1].num_losses == losses[0].num_losses:
        return "no_loss"
    first, last = losses[0].step, losses[-1].step
    start = first + (last - first) / 2
    quarter = (last - start) / 4
    before, after = _mean_loss(losses, start, start + quarter), _mean_loss(losses, last - quarter, last)
    ends = _promised_at(promises, start + quarter / 2), _promised_at(promises, last - quarter / 2)
    if before is None or after is None or ends[0] is None or ends[1] is None:
        return "too_few"
    promised = ends[1].since(ends[0])
    fall, error = before[0] - after[0], math.hypot(before[1], after[1])
    of_promise, total = math.sqrt(promised.variance), promised.total
    if not (0 < total < math.inf and math.isfinite(fall) and max(error, of_promise) <= LARGEST_ERROR * total):
        return "too_noisy"
    share = fall / total
    return KeptShare(share, math.hypot(error, share * of_promise) / total)


def _mean_loss(losses: Sequence[LossMoment], start: float, end: float) -> tuple[float, float] | None:
    """Mean loss of the steps in between, and its standard error."""
    means = [
        (after.total - before.total) / (after.num_losses - before.num_losses)
        for before, after in pairwise(losses)
        if start <= before.step and after.step <= end and after.num_losses > before.num_losses
    ]
    if len(means) < FEWEST_MEANS:
        return None
    mean, middle = fmean(means), (len(means) - 1) / 2
    spread = math.fsum((place - middle) ** 2 for place in range(len(means)))
    slope = math.fsum((place - middle) * loss for place, loss in enumerate(means)) / spread
    left = math.fsum((loss - mean - slope * (place - middle)) ** 2 for place, loss in enumerate(means))
    return mean, math.sqrt(left / (len(means) - 2) / len(means))


def _promised_at(promises: Sequence[PromiseMoment], step: float) -> Promised | None:
    """On the line between two moments, which the last two draw on for as long as it is between them."""
    found = None
    for before, after in pairwise(promises):
        if before.step <= step <= after.step + (after is promises[-1]) * (after.step - before.step):
            share = (step - before.step) / max(1, after.step - before.step)
            found = between(before.promised, after.promised, share)
    return found
