"""The learning rate's part in the noise scale: temperature, and which windows say nothing about B_crit.

A run at a higher temperature ε / B stands farther up the walls of the valley, where |G| is larger and φ smaller:
φ goes as 1 / T (McCandlish et al. 2018, arXiv:1812.06162, appendix C: 16 times colder gave 16 times the noise scale).
So a decayed or badly tuned learning rate changes φ without changing B_crit. In the language models of Gray et al. 2024,
arXiv:2411.00999, the learning rate moved φ and the batch did not: the two exponents are kept apart, and measured where
possible.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_not_negative, require_positive
from noisescale_core.theory.efficiency import step_efficiency

LEAST_SHARE_OF_PEAK = 0.1
"""Below this share of the peak learning rate a window's noise scale is not used for B_crit."""


@dataclass(frozen=True, slots=True)
class Exponents:
    """log φ = f(progress) + g log ε + h log B: how φ moves with learning rate and batch at equal progress.

    Attributes:
        learning_rate: g.
        batch: h.
        source: Where they come from.
    """

    learning_rate: float
    batch: float
    source: str


TEMPERATURE_ALONE = Exponents(-1.0, 1.0, "McCandlish et al. 2018, arXiv:1812.06162, appendix C: φ goes as B / ε")
"""φ as 1 / T in both."""

LEARNING_RATE_ALONE = Exponents(-1.0, 0.0, "Gray et al. 2024, arXiv:2411.00999: the batch moved nothing")
"""g taken over from the temperature; the paper gives no number for it."""


def temperature(*, learning_rate: float, batch: float) -> float:
    """ε / B, the temperature of small batches up to a constant of the task.

    Source: McCandlish et al. 2018, arXiv:1812.06162, appendix C; Smith & Le 2017, arXiv:1710.06451.

    Args:
        learning_rate: ε.
        batch: B in examples.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("at rest there is no temperature", learning_rate=learning_rate, batch=batch)
    return learning_rate / batch


def relative_temperature(
    *, learning_rate: float, best_of_huge_batches: float, batch: float, noise_scale: float
) -> float:
    """ε / ε_opt(B), with ε_opt(B) = ε_max B / (B + φ): 1 at the best learning rate of any batch.

    Goes as ε / B far below φ, and as ε far above.
    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6 and appendix C.

    Args:
        learning_rate: ε.
        best_of_huge_batches: ε_max.
        batch: B in examples.
        noise_scale: φ in examples.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("at rest there is no temperature", learning_rate=learning_rate)
    require_positive("find it by a search at a huge batch", best_of_huge_batches=best_of_huge_batches)
    return learning_rate / (best_of_huge_batches * step_efficiency(noise_scale, batch))


def lr_normalised(
    *,
    noise_scale: float,
    learning_rate: float,
    batch: float,
    reference_learning_rate: float,
    reference_batch: float,
    exponents: Exponents,
) -> float:
    """The noise scale that the run would show at a reference learning rate and batch: φ (ε0/ε)^g (B0/B)^h.

    A model's number, to be shown beside the measured one and with its exponents' source, never instead of it.

    Args:
        noise_scale: φ as measured, in examples.
        learning_rate: ε at that time.
        batch: B at that time, in examples.
        reference_learning_rate: ε0, the peak as a rule.
        reference_batch: B0 in examples.
        exponents: g and h.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("an unresolved noise scale has no value to normalise", noise_scale=noise_scale)
    require_positive(
        "leave out windows at rest", learning_rate=learning_rate, reference_learning_rate=reference_learning_rate
    )
    require_positive("a batch holds at least one example", batch=batch, reference_batch=reference_batch)
    by_learning_rate = math.pow(reference_learning_rate / learning_rate, exponents.learning_rate)
    return noise_scale * by_learning_rate * math.pow(reference_batch / batch, exponents.batch)


def informs_critical_batch(*, learning_rate: float, peak_learning_rate: float) -> bool:
    """Whether a window's learning rate is at least a tenth of the peak; below, φ is mostly the decay's.

    Args:
        learning_rate: Mean over the window.
        peak_learning_rate: Of the whole plan, or of the run so far.

    Raises:
        DomainError: If the peak is not positive or the learning rate negative.
    """
    require_positive("give the peak of the schedule", peak_learning_rate=peak_learning_rate)
    require_not_negative("give the mean over the window", learning_rate=learning_rate)
    return learning_rate >= LEAST_SHARE_OF_PEAK * peak_learning_rate


def windows_to_use(learning_rates: Sequence[float], *, peak_learning_rate: float | None = None) -> list[bool]:
    """Which windows of a run inform B_crit: neither deep in the warm-up nor deep in the decay.

    Args:
        learning_rates: Mean of each window, oldest first.
        peak_learning_rate: Of the plan; None for the largest of the windows.

    Raises:
        DomainError: If there are no windows.
    """
    require_any("learning_rates", len(learning_rates), "give the mean of each window")
    peak = max(learning_rates) if peak_learning_rate is None else peak_learning_rate
    return [informs_critical_batch(learning_rate=rate, peak_learning_rate=peak) for rate in learning_rates]


@dataclass(frozen=True, slots=True)
class LearningRateDrop:
    """A fall of the learning rate that a chart of the noise scale should mark.

    Attributes:
        position: Index of the first window after it.
        factor: Learning rate after, divided by that before.
    """

    position: int
    factor: float


def drops(learning_rates: Sequence[float], *, by: float = 2.0) -> list[LearningRateDrop]:
    """Where the learning rate falls by more than a factor from one window to the next.

    Args:
        learning_rates: Mean of each window, oldest first.
        by: The factor, above 1.

    Raises:
        DomainError: Unless the factor exceeds 1.
    """
    if not by > 1:
        raise DomainError(f"by must exceed 1, got {by:g}: 2 marks halvings")
    pairs = enumerate(pairwise(learning_rates), start=1)
    return [
        LearningRateDrop(position, after / before)
        for position, (before, after) in pairs
        if before > 0 and after * by < before
    ]
