"""What a noise scale says of the critical batch: B_crit = κ φ with κ known by its spread, and what is usual before."""

import math
from dataclasses import dataclass
from operator import mul

from noisescale_core.estimators.belief import Belief
from noisescale_core.theory.intervals import Estimate, LogError

USUAL_LOG_SD = 3.0
"""Standard deviation of ln B_crit about the batch that is trained with, before anything is measured.

It keeps a noise scale that is hardly known from asking for a batch without bound, and hardly moves one that is known.
B_crit of published tasks, in examples, spreads by 3.6 about 2,600 (McCandlish et al. 2018, arXiv:1812.06162, Table 1);
about the present batch the same advice follows in whatever unit examples are counted (decision 0025)."""

COARSEST, FINEST = 0.2, 0.05
"""Spacing of the grid of ln B_crit, a quarter of κ's standard deviation between these."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Critical:
    """The critical batch of a run, in examples.

    Attributes:
        estimate: Its median with the interval that is shown.
        belief: How likely each value is, for odds and choices.
    """

    estimate: Estimate
    belief: Belief


def critical_belief(noise_scale: Belief, *, log_mean: float, log_sd: float, batch_size: float) -> Belief:
    """The belief about B_crit.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        log_sd: Standard deviation of ln κ.
        batch_size: That is trained with, in examples.
    """
    spacing = min(COARSEST, max(FINEST, log_sd / 4))
    phi = noise_scale.resampled(spacing)
    reach = math.ceil(5 * log_sd / spacing)
    kernel = [math.exp(-0.5 * (spacing * place / log_sd) ** 2) for place in range(-reach, reach + 1)]
    around = [*[0.0] * (2 * reach), *phi.weights, *[0.0] * (2 * reach)]
    start, usual = phi.start + log_mean - spacing * reach, math.log(batch_size)
    logs = []
    for place in range(len(phi.weights) + 2 * reach):
        spread = sum(map(mul, kernel, around[place : place + len(kernel)]))
        far = (start + spacing * place - usual) / USUAL_LOG_SD
        logs.append((math.log(spread) if spread else -math.inf) - 0.5 * far * far)
    return Belief.of_logarithms(start, spacing, logs)


def critical_of(
    noise_scale: Belief, *, log_mean: float, odds_log_sd: float, shown_log_sd: float, batch_size: float
) -> Critical:
    """B_crit with its shown interval, whose statistical part is that of the noise scale alone.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        odds_log_sd: Its standard deviation for odds.
        shown_log_sd: For the interval, no smaller.
        batch_size: That is trained with, in examples.
    """
    belief = critical_belief(noise_scale, log_mean=log_mean, log_sd=odds_log_sd, batch_size=batch_size)
    shown = belief
    if shown_log_sd != odds_log_sd:
        shown = critical_belief(noise_scale, log_mean=log_mean, log_sd=shown_log_sd, batch_size=batch_size)
    value = belief.quantile(0.5)
    whole = _distances(shown, value)
    # what is usual narrows a noise scale that is hardly known, so the part must not exceed the whole
    ends = zip(_distances(noise_scale, noise_scale.quantile(0.5)), whole, strict=True)
    measured = [min(own, both) for own, both in ends]
    model = [math.sqrt(max(0.0, both**2 - own**2)) for own, both in zip(measured, whole, strict=True)]
    return Critical(Estimate(value, LogError(*measured), LogError(*model), LEVEL), belief)


def _distances(belief: Belief, value: float) -> list[float]:
    """From the value down and up to the ends of the interval, on the log scale."""
    low, high = belief.quantile(0.5 - LEVEL / 2), belief.quantile(0.5 + LEVEL / 2)
    return [max(0.0, math.log(value / low)), max(0.0, math.log(high / value))]
