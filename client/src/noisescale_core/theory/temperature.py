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

from noisescale_core.theory.domain import require_any, require_not_negative, require_positive

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
    # of each stretch of a run: the two calls below take most of the time
    if not (0 < peak_learning_rate < math.inf and learning_rate >= 0):
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
