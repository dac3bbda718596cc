"""Whether a run has shown a gradient at all: no noise scale is a number before.

Where G = 0 the noise scale is infinite, and a look at every step would still find a bounded interval in some window.
The estimates Y of |G|² are then martingale differences, whatever their scale, so the whole run is one test of E Y ≤ 0.
It is safe to look at after every step, and it costs nothing once the run is some windows long.
"""

import math

SIGNAL_Z = 4.75
"""The normal deviate that the run's t-statistic must reach, one chance in a million at a single look.

A run of 10,000 steps looked at after each holds about 80 independent looks."""

FEWEST_UPDATES = 8
"""As many as a window needs."""


def has_signal(*, num_updates: float, grad_sq_norm: float, grad_sq_norm_sq: float) -> bool:
    """Whether the sum of |G|² estimates is positive beyond chance, however often one looks.

    The estimates are symmetric or skewed to the right where G = 0 (`docs/estimators.md`), which makes a t-statistic
    smaller and not larger, and large values raise its denominator too: heavy tails delay a signal and do not fake one.

    Args:
        num_updates: n, updates of the run so far.
        grad_sq_norm: Σ Y, Y the estimate of |G|² of one update.
        grad_sq_norm_sq: Σ Y² over single updates, not over blocks.
    """
    return normal_deviate(num_updates, grad_sq_norm, grad_sq_norm_sq) >= SIGNAL_Z


def normal_deviate(count: float, total: float, total_sq: float) -> float:
    """The normal deviate as improbable as the t-statistic of E Y = 0, from n, Σ Y and Σ Y².

    With ν = n - 1, t² / ν = s / (1 - s) for s = (Σ Y)² / (n Σ Y²), and the deviate is
    (8ν + 1) / (8ν + 3) √(ν log(1 + t² / ν)), at most 2 % too small up to 8 for ν ≥ 7. It is 0 below 8 values, and where
    the sums are not finite.

    Source: Wallace 1959, "Bounds on normal approximations to Student's and the chi-square distributions", Annals of
    Mathematical Statistics 30.
    """
    if count < FEWEST_UPDATES or not 0 < total_sq < math.inf:
        return 0.0
    freedom = count - 1
    # factors first: a square of the sum could leave the range of doubles
    share = (total / count) * (total / total_sq)
    if share >= 1:
        return math.copysign(math.inf, total)
    size = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(-freedom * math.log1p(-share))
    return math.copysign(size, total)
