"""The noise scale of the latest window, in the job itself and as people read it."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from noisescale.capture.per_example.left_out import percent
from noisescale.guard import Notices
from noisescale.notices.explanations import why_no_estimate
from noisescale.notices.readable import readable, readable_seconds, several
from noisescale_core.advice.early import Early
from noisescale_core.advice.parts.reasons import words_of
from noisescale_core.advice.words import of_divergence
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.signal import RunningSignal
from noisescale_core.estimators.uncertainty import (
    WINDOWS_BEFORE,
    NoiseScaleEstimate,
    Reason,
    State,
    estimate,
)
from noisescale_core.estimators.windows import WindowSums, predict_updates_to_resolve, run_until_resolved

MIN_UPDATES = 16
"""A window of fewer has too rough a covariance, where the run is long enough to have more."""

MAX_BLOCKS = 32
"""Blocks of a window; from 16 on, more of them hardly narrow the interval."""

WINDOW_SHARE = 0.05
"""Longer windows read low: |G|² falls fast early in a run."""


@dataclass(frozen=True, slots=True)
class NoiseScale:
    """B_simple of the latest window; printed, it is a sentence.

    Attributes:
        estimate: Value, interval and state, in examples.
        num_updates: Updates with an estimate in the whole run.
        example: What is sampled independently, in the singular.
        unit: What it is shown in.
        units_per_example: Units in one example.
        steps_per_update: Optimizer steps from one update with an estimate to the next; more than 1 where only every
            k-th step is measured.
        seconds_per_step: How long a step takes lately; None: not known, so no time is foretold.
        why_nothing: Why there is no estimate at all, where there is none.
        divergence: Since when loss or gradients are not finite; None where they are.
        step: The last step that is in the estimate; None where there is none.
        early: Why it will not stay as it is; None where nothing says so.
        covered: Share of the model's elements that it is measured on; below 1 where layers have no per-example norms.
    """

    estimate: NoiseScaleEstimate
    num_updates: int
    example: str = "example"
    unit: str = "examples"
    units_per_example: float = 1.0
    steps_per_update: float = 1.0
    seconds_per_step: float | None = None
    why_nothing: str = why_no_estimate(None, is_silent=False)
    divergence: Divergence | None = None
    step: int | None = None
    early: Early | None = None
    covered: float = 1.0

    @classmethod
    def of_nothing(cls) -> "NoiseScale":
        """What is known where nothing was measured."""
        return cls(RecentUpdates().estimate(), 0)

    @property
    def value(self) -> float | None:
        """B_simple in examples; None while unresolved."""
        return self.estimate.value

    @property
    def state(self) -> str:
        """One of "resolved", "tentative" and "unresolved"."""
        return self.estimate.state

    def __str__(self) -> str:
        return self.said(has_ended=False)

    def said(self, *, has_ended: bool) -> str:
        """A sentence.

        Args:
            has_ended: The run takes no more steps, so none are foretold.
        """
        if self.divergence is not None:
            until = "" if self.step is None else f"; until step {self.step}: {self._known() or 'not resolved'}"
            return f"{of_divergence.said(self.divergence)}{until}"
        known, wait = self._known(), None if has_ended else self._wait()
        if known is None:
            yet = "" if has_ended else " yet"
            return f"not resolved{yet}: {self._what_is_missing(several(self.example), wait)}"
        if wait and self.estimate.state is State.TENTATIVE:
            known = f"{known}: {wait}"
        return known if self.early is None else f"{known}; {self.early.clause}"

    def _known(self) -> str | None:
        """Value, interval and state; None where there is no value."""
        now = self.estimate
        examples = several(self.example)
        if now.value is None or now.low is None or now.high is None or now.z is None:
            return None
        in_units = (
            f" = {readable(now.value * self.units_per_example)} {self.unit}" if self.units_per_example != 1 else ""
        )
        interval = f"[{readable(now.low)}, {readable(now.high)}]"
        part = f", of {percent(self.covered)} of the model" if self.covered < 1 else ""
        return f"{readable(now.value)} {examples} {interval}{in_units}, z = {now.z:.1f}, {now.state}{part}"

    def _what_is_missing(self, examples: str, wait: str | None) -> str:
        now = self.estimate
        if now.reason == Reason.NO_ESTIMATES:
            return self.why_nothing
        words = words_of(now.reason)
        why = words.so_far.format(num_updates=now.num_updates)
        bound = f"> {readable(now.low)} {examples}" if now.low is not None else ""
        return ", ".join(part for part in (bound, why, "" if words.is_bug else wait) if part) or words.short

    def _wait(self) -> str | None:
        """How many more steps it takes at least; None if that cannot be said.

        Not about how many: |G|² falls while a run trains, which takes what a longer window gives, or more.
        """
        now = self.estimate
        if now.z is None:
            return None
        needed = predict_updates_to_resolve(num_updates=now.num_updates, z=now.z, level=now.level).at_least
        if needed is None:
            return None
        length = run_until_resolved(needed, window_share=WINDOW_SHARE, shortest_window=MIN_UPDATES)
        steps = math.ceil((length - self.num_updates) * self.steps_per_update)
        if steps < 1:
            return None
        time = "" if self.seconds_per_step is None else f" ({readable_seconds(steps * self.seconds_per_step)})"
        return f"resolved after at least {steps if steps < 100 else readable(steps)} more steps{time}"


@dataclass(slots=True)
class _Block:
    """Neighbouring updates: their number and the sums of both terms."""

    num_updates: int = 0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0

    def add(self, num_updates: int, trace_cov: float, grad_sq_norm: float) -> None:
        self.num_updates += num_updates
        self.trace_cov += trace_cov
        self.grad_sq_norm += grad_sq_norm


class RecentUpdates:
    """The terms of the latest window and of the four before it, and whether the run has shown a gradient.

    Blocks of neighbouring updates, twice as long whenever a window would hold more than 32 of them: the memory stays
    the same however long the run.
    """

    def __init__(self) -> None:
        self._blocks: deque[_Block] = deque()
        self._first_block = 0
        self._updates_per_block = 1
        self._doubles_at = _first_with_longer_window(MAX_BLOCKS)
        self._signal = RunningSignal()
        self.num_updates = 0
        self.has_signal = False

    def add(self, terms: Terms, step: int | None = None) -> None:
        """Add one update, of a step; None: each update so far was a step."""
        if self.num_updates % self._updates_per_block == 0:
            self._blocks.append(_Block())
            self._forget()
        block = self._blocks[-1]
        block.num_updates += 1
        block.trace_cov += terms.trace_cov
        block.grad_sq_norm += terms.grad_sq_norm
        # what was once shown stays shown: one huge value later on must not hide it
        if not self.has_signal:
            self._signal.add(self.num_updates if step is None else step, terms.grad_sq_norm)
            self.has_signal = self._signal.is_shown
        self.num_updates += 1
        if self.num_updates >= self._doubles_at:
            self._double_blocks()

    def estimate(self) -> NoiseScaleEstimate:
        """The noise scale of the last 5 % of the updates, at least 16 of them, in up to 33 blocks."""
        start = self._window_start() - self._first_block
        blocks = [(block.num_updates, block.trace_cov, block.grad_sq_norm) for block in self._blocks]
        first_before = max(0, start - WINDOWS_BEFORE * (len(blocks) - start))
        return estimate(
            WindowSums.from_blocks(blocks[start:]),
            has_signal=self.has_signal,
            before=WindowSums.from_blocks(blocks[first_before:start]),
        )

    def _window_start(self) -> int:
        """The number of the window's first block."""
        return (self.num_updates - _window_updates(self.num_updates)) // self._updates_per_block

    def _double_blocks(self) -> None:
        if self._first_block % 2:
            self._blocks.popleft()
            self._first_block += 1
        merged: deque[_Block] = deque()
        for number, block in enumerate(self._blocks):
            if number % 2:
                merged[-1].add(block.num_updates, block.trace_cov, block.grad_sq_norm)
            else:
                merged.append(block)
        self._blocks = merged
        self._first_block //= 2
        self._updates_per_block *= 2
        self._doubles_at = _first_with_longer_window(MAX_BLOCKS * self._updates_per_block)

    def _forget(self) -> None:
        """Drop the blocks that neither the window nor the windows before it will use again."""
        num_kept = (1 + WINDOWS_BEFORE) * (MAX_BLOCKS + 1)
        while len(self._blocks) > num_kept:
            self._blocks.popleft()
            self._first_block += 1


def _window_updates(num_updates: int) -> int:
    """Updates in the latest window of so many."""
    return min(num_updates, max(MIN_UPDATES, math.ceil(WINDOW_SHARE * num_updates)))


def _first_with_longer_window(length: int) -> int:
    """After how many updates the window is longer than this for the first time: not asked at each of them."""
    num_updates = int(length / WINDOW_SHARE) - 1
    while _window_updates(num_updates) <= length:
        num_updates += 1
    return num_updates


# Says how long it takes until the noise scale is resolved, and when it is.


class Outlook:
    """Looks after 16 updates, 32, 64 and so on: what is foretold changes with the logarithm of what is known.

    Attributes:
        next: Updates at the next look; infinity after the last one.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.next: float = MIN_UPDATES

    def look(self, num_updates: int, noise_scale: Callable[[], NoiseScale]) -> None:
        """Say where the run stands, if it is time to."""
        if num_updates < self.next:
            return
        self.next = 2 * num_updates
        now = noise_scale()
        if now.state == "resolved" and now.early is None:  # what is early is said again
            self.next = math.inf
        self._notices.say(f"noise scale after {num_updates} measured steps: {now}")
