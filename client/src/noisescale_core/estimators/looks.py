"""Looks: the stretches of steps whose sums say how likely each noise scale is.

A look is as long as a sixteenth to an eighth of the steps before it, and 8 steps at least: short enough for φ to stand
still in it. Its edges depend on the number of a step alone and are buckets of the stored pyramid where they can be, so
a job and a server that hold the same steps cut them alike.
"""

from typing import NamedTuple

from noisescale_core.estimators.noise_scale import Terms

STEPS_OF_THE_FIRST = 8
"""A shorter look has no spread of its own."""

LOOKS_PER_DOUBLING = 8

_FIRST_SPLIT = STEPS_OF_THE_FIRST * LOOKS_PER_DOUBLING
"""From this step on looks are an eighth of a doubling; before it they are 8 steps."""

_BITS_OF_FIRST_SPLIT = _FIRST_SPLIT.bit_length()


class Look(NamedTuple):
    """Sums over the single updates of some neighbouring steps.

    Attributes:
        num_updates: n, updates that hold an estimate.
        trace_cov: Σ X, X the estimate of tr Σ of one update, squared gradient × examples.
        grad_sq_norm: Σ Y, Y the estimate of |G|² of one update.
        trace_cov_sq: Σ X².
        grad_sq_norm_sq: Σ Y².
        cross: Σ X Y.
        examples: Σ B over the updates whose batch is known.
        num_batches: Their number.
        learning_rate: At the last one; None where none was logged.
    """

    num_updates: float = 0.0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    trace_cov_sq: float = 0.0
    grad_sq_norm_sq: float = 0.0
    cross: float = 0.0
    examples: float = 0.0
    num_batches: float = 0.0
    learning_rate: float | None = None


class Looks:
    """The looks of a run that goes on, one update at a time."""

    def __init__(self) -> None:
        self._step = self._last_step = -1
        # plain tuples of numbers, which the garbage collector need not look at
        self._complete: list[tuple[float | None, ...]] = []
        self._sums: list[float] = []
        self._rate: float | None = None

    def add(self, step: int, terms: Terms, batch_size: float, learning_rate: float | None) -> None:
        """Add an update; a step before the last one, after a restart, begins a look of its own.

        Args:
            step: Its number.
            terms: Its estimates.
            batch_size: In examples.
            learning_rate: As logged.
        """
        if not self._step <= step <= self._last_step:
            if self._sums:
                self._complete.append((*self._sums, self._rate))
            self._last_step, self._sums, self._rate = steps_of(look_of(step))[1], [0.0] * _NUM_SUMS, None
        self._step = step
        x, y, sums = terms.trace_cov, terms.grad_sq_norm, self._sums
        sums[0] += 1
        sums[1] += x
        sums[2] += y
        sums[3] += x * x
        sums[4] += y * y
        sums[5] += x * y
        sums[6] += batch_size
        sums[7] += 1
        if learning_rate is not None:
            self._rate = learning_rate

    def so_far(self) -> list[Look]:
        """All of them, oldest first."""
        found = [*self._complete, (*self._sums, self._rate)] if self._sums else []
        return [Look(*one) for one in found]  # type: ignore[arg-type]  # the last one alone may be None


_NUM_SUMS = 8


def look_of(step: int) -> int:
    """The number of the look that a step is in, from 0."""
    if step < _FIRST_SPLIT:
        return step // STEPS_OF_THE_FIRST
    doublings = step.bit_length() - _BITS_OF_FIRST_SPLIT
    return LOOKS_PER_DOUBLING * doublings + (step >> (doublings + 3))


def steps_of(look: int) -> tuple[int, int]:
    """First and last step of a look."""
    doublings = max(0, look // LOOKS_PER_DOUBLING - 1)
    length = STEPS_OF_THE_FIRST << doublings
    first = (look - LOOKS_PER_DOUBLING * doublings) * length
    return first, first + length - 1
