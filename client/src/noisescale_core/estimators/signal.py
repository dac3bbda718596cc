"""Whether a run has shown a gradient at all: no noise scale is a number before.

Where G = 0 the noise scale is infinite, and a look at every step would still find a bounded interval in some window.
The estimates Y of |G|² are then martingale differences, whatever their scale, so the whole run is one test of E Y ≤ 0.
It is safe to look at after every step, and it costs nothing once the run is some windows long.

|G|² and its noise fall by orders of magnitude while a run trains. Each octave of the steps (0 to 7, 8 to 15, 16 to 31,
32 to 63, …) is therefore measured by its own scale, and the octaves add up.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

SIGNAL_Z = 4.75
"""The normal deviate that the run must reach, one chance in a million at a single look.

A run of 10,000 steps looked at after each holds about 80 independent looks."""

FEWEST_UPDATES = 8
"""As many as a window needs."""

_BITS_OF_THE_FIRST = 3
"""The first octave is steps 0 to 7."""


class Evidence(NamedTuple):
    """Sums over the single updates of some steps.

    Attributes:
        num_updates: n, updates that hold an estimate.
        grad_sq_norm: Σ Y, Y the estimate of |G|² of one update.
        grad_sq_norm_sq: Σ Y² over single updates, not over blocks.
    """

    num_updates: float
    grad_sq_norm: float
    grad_sq_norm_sq: float

    def plus(self, other: "Evidence") -> "Evidence":
        """Both together."""
        return Evidence(
            self.num_updates + other.num_updates,
            self.grad_sq_norm + other.grad_sq_norm,
            self.grad_sq_norm_sq + other.grad_sq_norm_sq,
        )


NO_EVIDENCE = Evidence(0, 0.0, 0.0)


def octave_of(step: int) -> int:
    """The number of the octave that a step is in, from 0."""
    return max(0, step.bit_length() - _BITS_OF_THE_FIRST)


def steps_of(octave: int) -> tuple[int, int]:
    """First and last step of an octave."""
    low = 1 << (octave + _BITS_OF_THE_FIRST - 1) if octave else 0
    return low, (1 << (octave + _BITS_OF_THE_FIRST)) - 1


def has_signal(octaves: Iterable[Evidence]) -> bool:
    """Whether the estimates of |G|² are positive beyond chance, however often one looks.

    The deviates z of the octaves are combined to Σ √n z / √Σ n: with a constant gradient that is as soon as one
    t-statistic of the whole run, and with one that falls it is sooner, as large early values do not drown the others.
    The estimates are symmetric or skewed to the right where G = 0 (`docs/estimators.md`), which makes a t-statistic
    smaller and not larger, and large values raise its denominator too: heavy tails delay a signal and do not fake one.

    Args:
        octaves: Of the run so far, oldest first; one alone is judged by its t-statistic. One with too few updates is
            taken together with the next.

    Source: weights of Liptak 1958, "On the combination of independent tests".
    """
    found = RunningSignal()
    for one in octaves:
        found.add_octave(one)
    return found.is_shown


class RunningSignal:
    """The same for a run that goes on, one update at a time."""

    def __init__(self) -> None:
        self._weighted = 0.0
        self._num_weighted = 0.0
        self._open = NO_EVIDENCE
        self._octave = 0

    def add(self, step: int, grad_sq_norm: float) -> None:
        """Add the estimate of |G|² of one update."""
        octave = octave_of(step)
        if octave != self._octave:
            self._octave = octave
            self._close()
        n, total, total_sq = self._open
        self._open = Evidence(n + 1, total + grad_sq_norm, total_sq + grad_sq_norm * grad_sq_norm)

    def add_octave(self, evidence: Evidence) -> None:
        """Add the sums over an octave."""
        self._close()
        self._open = self._open.plus(evidence)

    @property
    def is_shown(self) -> bool:
        """Whether there is a gradient beyond chance."""
        weighted, num_updates = self._with_open()
        return num_updates > 0 and weighted >= SIGNAL_Z * math.sqrt(num_updates)

    def _close(self) -> None:
        """Weigh what is open; with too few updates it waits for the next octave."""
        if self._open.num_updates >= FEWEST_UPDATES:
            self._weighted, self._num_weighted = self._with_open()
            self._open = NO_EVIDENCE

    def _with_open(self) -> tuple[float, float]:
        n = self._open.num_updates
        if n < FEWEST_UPDATES:
            return self._weighted, self._num_weighted
        return self._weighted + math.sqrt(n) * normal_deviate(*self._open), self._num_weighted + n


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
