"""The run so far in little memory: what was spent, at which batch, and the noise scale along the way."""

import bisect
import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisescale.rows.updates import Update
from noisescale.window.recent_updates import MIN_UPDATES, WINDOW_SHARE
from noisescale_core.advice.early import Before
from noisescale_core.estimators.looks import Look, Looks
from noisescale_core.estimators.uncertainty import WINDOWS_BEFORE, NoiseScaleEstimate, estimate
from noisescale_core.estimators.windows import WindowSums

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
        last_step: Number of the last one.
        wall_time: When the last one was logged, Unix seconds.
        learning_rate: At the last one; None where it logs none.
    """

    num_updates: int = 0
    num_batches: int = 0
    examples: float = 0.0
    num_terms: int = 0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    flags: int = 0
    last_step: int = 0
    wall_time: float = 0.0
    learning_rate: float | None = None

    def add(self, other: "Stretch") -> None:
        """Take the next stretch in."""
        self.num_updates += other.num_updates
        self.num_batches += other.num_batches
        self.examples += other.examples
        self.num_terms += other.num_terms
        self.trace_cov += other.trace_cov
        self.grad_sq_norm += other.grad_sq_norm
        self.flags |= other.flags
        self.last_step, self.wall_time = other.last_step, other.wall_time
        self.learning_rate = other.learning_rate


@dataclass(frozen=True, slots=True)
class Moment:
    """What was spent up to a moment, since the one before.

    Attributes:
        examples: Spent, as far as batches are known.
        batch_size: Their mean; None while unknown.
        noise_scale: Of the window that ends here.
        num_steps: Optimizer steps, those between measured ones too.
        seconds: Wall time; None of the first, as nobody saw it begin.
        learning_rate: At the end.
    """

    examples: float
    batch_size: float | None
    noise_scale: NoiseScaleEstimate
    num_steps: int
    seconds: float | None
    learning_rate: float | None


class RunHistory:
    """The measured steps of one optimizer, in at most 640 stretches: twice as long whenever there would be more.

    Attributes:
        newest: The last update; None before the first.
        learning_rate: The last one known, of measured steps and others.
        num_updates: How many there were.
    """

    def __init__(self) -> None:
        self.newest: Update | None = None
        self.learning_rate: float | None = None
        self.num_updates = 0
        self._started_at: float | None = None
        self._stretches: list[Stretch] = []
        self._looks = Looks()
        self._updates_per_stretch = 1

    def add(self, update: Update) -> None:
        """Add one update."""
        if self.newest is None:
            self._started_at = update.logged.wall_time
        if self.num_updates % self._updates_per_stretch == 0:
            self._begin_stretch()
        self.newest = update
        self.num_updates += 1
        logged, _, _, batch_size, terms, _, _, flags, _ = update
        step, lr = logged.step, logged.lr
        last = self._stretches[-1]
        last.num_updates += 1
        last.flags |= flags
        last.last_step, last.wall_time, last.learning_rate = step, logged.wall_time, lr
        if lr is not None:
            self.learning_rate = lr
        if batch_size is not None:
            last.num_batches += 1
            last.examples += batch_size
        if terms is not None:
            last.num_terms += 1
            last.trace_cov += terms.trace_cov
            last.grad_sq_norm += terms.grad_sq_norm
            if batch_size is not None:
                self._looks.add(step, terms, batch_size, lr)

    def now(self) -> "RunHistory":
        """The run so far, which does not go on."""
        one = copy.copy(self)
        one._stretches = [*self._stretches[:-1], *map(copy.copy, self._stretches[-1:])]  # the others never change
        one._looks = copy.deepcopy(self._looks)
        return one

    def _begin_stretch(self) -> None:
        if len(self._stretches) == MAX_STRETCHES:
            self._double()
        if self.num_updates % self._updates_per_stretch == 0:
            self._stretches.append(Stretch())

    @property
    def looks(self) -> list[Look]:
        """The sums that say how likely each noise scale is, oldest first."""
        return self._looks.so_far()

    @property
    def rates(self) -> list[tuple[int, float]]:
        """Some of the steps with their learning rates, oldest first."""
        known = [(one.last_step, one.learning_rate) for one in self._stretches]
        return [(step, rate) for step, rate in known if rate is not None]

    def see_rate(self, learning_rate: float | None) -> None:
        """Remember the learning rate of a step, measured or not; None leaves the last one known."""
        if learning_rate is not None:
            self.learning_rate = learning_rate

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
        stretches, rows = self._stretches, [_row(stretch) for stretch in self._stretches]
        every = max(1, math.ceil(len(stretches) / MAX_POINTS))
        length = len(stretches) - self._window_start()
        for end in [*range(len(stretches), 0, -every)][::-1]:
            start = max(0, end - every)
            earlier = stretches[start - 1] if start else None
            window = rows[max(0, end - length) : end]
            before = rows[max(0, end - (1 + WINDOWS_BEFORE) * length) : max(0, end - length)]
            noise_scale = estimate(_sums(window), has_signal=has_signal, before=_sums(before))
            yield _moment(stretches[start:end], earlier, noise_scale)

    def half_way(self, steps_done: int, *, has_signal: bool) -> Before | None:
        """The noise scale when half of the steps were done; None where that is not known.

        Args:
            steps_done: Optimizer steps so far.
            has_signal: Whether the run has shown a gradient.
        """
        end = bisect.bisect_right(self._stretches, steps_done, key=lambda stretch: 2 * (stretch.last_step + 1))
        if not end:
            return None
        length = len(self._stretches) - self._window_start()
        window = self._stretches[max(0, end - length) : end]
        found = estimate(_sums([_row(stretch) for stretch in window]), has_signal=has_signal)
        return Before(window[-1].last_step, found.value, found.high)

    def _window_start(self) -> int:
        """The first stretch of the latest window: the last twentieth of the updates, and 16 of them at least."""
        length = min(self.num_updates, max(MIN_UPDATES, math.ceil(WINDOW_SHARE * self.num_updates)))
        return (self.num_updates - length) // self._updates_per_stretch

    def _double(self) -> None:
        merged = [*map(copy.copy, self._stretches[::2])]
        for into, other in zip(merged, self._stretches[1::2], strict=True):
            into.add(other)
        self._stretches = merged
        self._updates_per_stretch *= 2


def _moment(own: Sequence[Stretch], earlier: Stretch | None, noise_scale: NoiseScaleEstimate) -> Moment:
    num_batches, examples = sum(one.num_batches for one in own), sum(one.examples for one in own)
    last = own[-1]
    return Moment(
        examples=examples,
        batch_size=examples / num_batches if num_batches else None,
        noise_scale=noise_scale,
        num_steps=sum(one.num_updates for one in own) if earlier is None else last.last_step - earlier.last_step,
        seconds=None if earlier is None else max(0.0, last.wall_time - earlier.wall_time),
        learning_rate=last.learning_rate,
    )


def _row(stretch: Stretch) -> tuple[float, ...] | None:
    """What a stretch adds to the sums of a window, in the order of `WindowSums`; None where it has no estimate."""
    n, x, y = stretch.num_terms, stretch.trace_cov, stretch.grad_sq_norm
    return (n, x, y, x * x, y * y, x * y, n * x, n * y, n * n) if n else None


def _sums(rows: Sequence[tuple[float, ...] | None]) -> WindowSums:
    """Each stretch is in 25 windows or so: adding whole columns up takes a quarter of the time of block by block."""
    known = [row for row in rows if row is not None]
    return WindowSums(len(known), *map(sum, zip(*known, strict=True)))
