"""What a noise scale says of the critical batch: B_crit = κ φ with κ known by its spread, and what is usual before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from noisescale_core.advice.evidence.usual import Usual
from noisescale_core.estimators.belief import Belief
from noisescale_core.theory.intervals import Estimate, LogError

COARSEST, FINEST = 0.2, 0.05
"""Spacing of the grid of ln B_crit, a quarter of κ's standard deviation between these."""

FAR = 1e9
"""Times B_crit: where an end is open."""

REACH = 8.0
"""Of the grid to either side, in scales."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Critical:
    """The critical batch of a run, in examples.

    Attributes:
        estimate: Its median with the interval that is shown.
        belief: How likely each value is, for odds and choices.
        floor: Batch in examples below which examples are lost again; 0 where none is known.
    """

    estimate: Estimate
    belief: Belief
    floor: float = 0.0


def critical_belief(noise_scale: Belief, *, log_mean: float, log_sd: float, usual: Sequence[Usual]) -> Belief:
    """The belief about B_crit.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        log_sd: Standard deviation of ln κ.
        usual: What is known of B_crit besides.
    """
    spacing = min(COARSEST, max(FINEST, log_sd / 4))
    phi = noise_scale.resampled(spacing)
    reach = math.ceil(5 * log_sd / spacing)
    kernel = [math.exp(-0.5 * (spacing * place / log_sd) ** 2) for place in range(-reach, reach + 1)]
    around = [*[0.0] * (2 * reach), *phi.weights, *[0.0] * (2 * reach)]
    start = phi.start + log_mean - spacing * reach
    logs = []
    for place in range(len(phi.weights) + 2 * reach):
        spread = sum(map(mul, kernel, around[place : place + len(kernel)]))
        before = math.fsum(one.log_density(start + spacing * place) for one in usual)
        logs.append((math.log(spread) if spread else -math.inf) + before)
    return Belief.of_logarithms(start, spacing, logs)


def critical_of(
    noise_scale: Belief,
    *,
    log_mean: float,
    odds_log_sd: float,
    shown_log_sd: float,
    usual: Sequence[Usual],
    floor: float = 0.0,
) -> Critical:
    """B_crit with its shown interval, whose statistical part is that of the noise scale alone.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        odds_log_sd: Its standard deviation for odds.
        shown_log_sd: For the interval, no smaller.
        usual: What is known of B_crit besides.
        floor: Batch in examples below which examples are lost again.
    """
    belief = critical_belief(noise_scale, log_mean=log_mean, log_sd=odds_log_sd, usual=usual)
    shown = belief
    if shown_log_sd != odds_log_sd:
        shown = critical_belief(noise_scale, log_mean=log_mean, log_sd=shown_log_sd, usual=usual)
    value = belief.quantile(0.5)
    whole = _distances(shown, value)
    # what is usual narrows a noise scale that is hardly known, so the part must not exceed the whole
    ends = zip(_distances(noise_scale, noise_scale.quantile(0.5)), whole, strict=True)
    measured = [min(own, both) for own, both in ends]
    model = [math.sqrt(max(0.0, both**2 - own**2)) for own, both in zip(measured, whole, strict=True)]
    return Critical(Estimate(value, LogError(*measured), LogError(*model), LEVEL), belief, floor)


def expected_critical(usual: Sequence[Usual], *, floor: float = 0.0) -> Critical:
    """B_crit before anything is measured.

    Args:
        usual: What is known of it, at least one.
        floor: Batch in examples below which examples are lost again.
    """
    low = min(one.log_mean - REACH * one.log_scale for one in usual)
    high = max(one.log_mean + REACH * one.log_scale for one in usual)
    places = range(math.ceil((high - low) / COARSEST) + 1)
    logs = [math.fsum(one.log_density(low + COARSEST * place) for one in usual) for place in places]
    belief = Belief.of_logarithms(low, COARSEST, logs)
    value = belief.quantile(0.5)
    return Critical(Estimate(value, LogError(0.0, 0.0), LogError(*_distances(belief, value)), LEVEL), belief, floor)


def stated_critical(estimate: Estimate) -> Critical:
    """B_crit as somebody said it, as a normal on the log scale to either side.

    Args:
        estimate: With its interval; an open end is far enough away to matter to no batch.
    """
    found = estimate.interval
    return Critical(
        estimate, Belief.of_interval(found.value, found.low, min(found.high, found.value * FAR), found.level)
    )


def _distances(belief: Belief, value: float) -> list[float]:
    """From the value down and up to the ends of the interval, on the log scale."""
    low, high = belief.quantile(0.5 - LEVEL / 2), belief.quantile(0.5 + LEVEL / 2)
    return [max(0.0, math.log(value / low)), max(0.0, math.log(high / value))]
