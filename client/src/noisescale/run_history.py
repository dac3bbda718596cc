"""The run so far in little memory: what was spent, at which batch, and the noise scale along the way."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisescale.estimators.uncertainty import NoiseScaleEstimate, estimate
from noisescale.estimators.windows import WindowSums
from noisescale.recent_updates import MIN_UPDATES, WINDOW_SHARE
from noisescale.updates import Update

MAX_STRETCHES = 640
"""A twentieth of them are the 32 blocks that a window is judged by; together they take 0.1 MB."""

MAX_POINTS = 100
"""Moments at which the noise scale of the past is estimated, as the server does."""


@dataclass(slots=True)
class Stretch:
    """Neighbouring updates: sums, and what the last of them said.

    Attributes:
        num_updates: Optimizer steps that were logged and measured.
        num_batches: Those whose batch is known.
        examples: Sum of these batches.
        num_terms: Those with an estimate.
        trace_cov: Sum of tr Σ.
        grad_sq_norm: Sum of |G|².
        flags: All their bits.
    """

    num_updates: int = 0
    num_batches: int = 0
    examples: float = 0.0
    num_terms: int = 0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    flags: int = 0

    def add(self, other: "Stretch") -> None:
        """Take the next stretch in."""
        self.num_updates += other.num_updates
        self.num_batches += other.num_batches
        self.examples += other.examples
        self.num_terms += other.num_terms
        self.trace_cov += other.trace_cov
        self.grad_sq_norm += other.grad_sq_norm
        self.flags |= other.flags


@dataclass(frozen=True, slots=True)
class Moment:
    """What was spent up to a moment, since the one before.

    Attributes:
        examples: Spent, as far as batches are known.
        batch_size: Their mean; None while unknown.
        noise_scale: Of the window that ends here.
    """

    examples: float
    batch_size: float | None
    noise_scale: NoiseScaleEstimate


class RunHistory:
    """The measured steps of one optimizer, in at most 640 stretches: twice as long whenever there would be more.

    Attributes:
        newest: The last update; None before the first.
        batch_size: The last one known, in examples.
        learning_rate: The last one known.
        num_updates: How many there were.
    """

    def __init__(self) -> None:
        self.newest: Update | None = None
        self.batch_size: float | None = None
        self.learning_rate: float | None = None
        self.num_updates = 0
        self._started_at: float | None = None
        self._stretches: list[Stretch] = []
        self._updates_per_stretch = 1

    def add(self, update: Update) -> None:
        """Add one update."""
        if self.newest is None:
            self._started_at = update.logged.wall_time
        if self.num_updates % self._updates_per_stretch == 0:
            if len(self._stretches) == MAX_STRETCHES:
                self._double()
            if self.num_updates % self._updates_per_stretch == 0:
                self._stretches.append(Stretch())
        self.newest = update
        self.num_updates += 1
        last = self._stretches[-1]
        last.num_updates += 1
        last.flags |= update.flags
        if update.logged.lr is not None:
            self.learning_rate = update.logged.lr
        if update.global_batch is not None:
            last.num_batches += 1
            last.examples += update.global_batch
            self.batch_size = update.global_batch
        if update.terms is not None:
            last.num_terms += 1
            last.trace_cov += update.terms.trace_cov
            last.grad_sq_norm += update.terms.grad_sq_norm

    @property
    def flags(self) -> int:
        """All bits of the latest window."""
        flags = 0
        for stretch in self._stretches[self._window_start() :]:
            flags |= stretch.flags
        return flags

    @property
    def seconds(self) -> float | None:
        """From the first update to the last, and one step more; None before the second."""
        if self.newest is None or self._started_at is None or self.num_updates < 2:
            return None
        between = max(0.0, self.newest.logged.wall_time - self._started_at)
        return between * self.num_updates / (self.num_updates - 1)

    def moments(self, *, has_signal: bool) -> Iterator[Moment]:
        """Up to 100 moments, oldest first, each with the noise scale of the twentieth of the run before it.

        Args:
            has_signal: Whether the run has shown a gradient.
        """
        stretches = self._stretches
        every = max(1, math.ceil(len(stretches) / MAX_POINTS))
        length = len(stretches) - self._window_start()
        for end in [*range(len(stretches), 0, -every)][::-1]:
            own = stretches[max(0, end - every) : end]
            num_batches = sum(one.num_batches for one in own)
            examples = sum(one.examples for one in own)
            yield Moment(
                examples=examples,
                batch_size=examples / num_batches if num_batches else None,
                noise_scale=_estimate(stretches[max(0, end - length) : end], has_signal=has_signal),
            )

    def _window_start(self) -> int:
        """The first stretch of the latest window: the last twentieth of the updates, and 16 of them at least."""
        length = min(self.num_updates, max(MIN_UPDATES, math.ceil(WINDOW_SHARE * self.num_updates)))
        return (self.num_updates - length) // self._updates_per_stretch

    def _double(self) -> None:
        merged = self._stretches[::2]
        for into, other in zip(merged, self._stretches[1::2], strict=True):
            into.add(other)
        self._stretches = merged
        self._updates_per_stretch *= 2


def _estimate(window: Sequence[Stretch], *, has_signal: bool) -> NoiseScaleEstimate:
    blocks = ((one.num_terms, one.trace_cov, one.grad_sq_norm) for one in window if one.num_terms)
    return estimate(WindowSums.from_blocks(blocks), has_signal=has_signal)
