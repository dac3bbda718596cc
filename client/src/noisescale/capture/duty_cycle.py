"""Which optimizer steps are measured: every k-th, k as asked for or as a budget allows."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

NUM_TIMED = 20
"""Measured steps after which k is fixed."""

NUM_TIMED_IF_DEAR = 4
"""The same where a measured step costs more than a whole step without us, and all so far `DEAR` seconds."""

DEAR = 1.0

NUM_WARM_UP = 3
"""First steps that are not timed: they touch memory and load code for the first time."""

ROUND = 3
"""While timing, steps come in rounds: one that is measured, one that pays for taking the hooks off, one without us."""

MAX_EVERY = 10_000

UNASKED_OVERHEAD = 0.04
"""Share of the training's time for per-example norms that were chosen by ourselves. What is promised is 0.05: the
rest is for what the clock here does not see."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What measuring costs, in seconds.

    Attributes:
        step: One optimizer step without us.
        measured: Our part of a measured step, with putting hooks on and taking them off, and with what the step loses
            beside our calls.
        unmeasured: Our part of a step that is not.
    """

    step: float
    measured: float
    unmeasured: float

    def keeps(self, overhead: float) -> bool:
        """Whether there is a k at all for which our part of all steps stays within the budget."""
        return overhead * self.step * MAX_EVERY > self.unmeasured * MAX_EVERY + self.measured - self.unmeasured

    def every(self, overhead: float) -> int:
        """The smallest k for which our part of all steps stays within the budget; the largest where none does."""
        spare = overhead * self.step - self.unmeasured
        extra = max(0.0, self.measured - self.unmeasured)
        if extra <= spare:
            return 1
        if spare * MAX_EVERY <= extra:
            return MAX_EVERY
        return math.ceil(round(extra / spare, 6))  # differences of clock readings are rounded


class DutyCycle:
    """Measures every k-th step; with a budget the first steps are timed, measured and not in turn, then k is fixed.

    Attributes:
        every: k; 1 while it is still open.
        overhead: The budget; None without one.
        budget: Of it what is left beside `looks`.
        is_timing: Whether our own calls are to be timed now.
        timing: What the timing gave; None without a budget or before.

    Args:
        every: Steps per measured step.
        overhead: Share of a step's time that measuring may cost on average; None: no budget.
        on_fixed: Told when a budget has fixed k.
        clock: Seconds.
        agree: From the k that suits this process to the one that all processes of the job take.
        looks: Share of a step's time that looks at the learning rate may take, which is part of the budget.
    """

    def __init__(
        self,
        every: int,
        overhead: float | None,
        *,
        on_fixed: Callable[["DutyCycle"], None],
        clock: Callable[[], float],
        agree: Callable[[int], int] = lambda every: every,
        looks: float = 0.0,
    ) -> None:
        self.every = every
        self.overhead = overhead
        self.budget = None if overhead is None else overhead - looks
        self.timing: Timing | None = None
        self.is_timing = overhead is not None
        self._on_fixed = on_fixed
        self._clock = clock
        self._agree = agree
        self._num_steps = 0
        self._offset = 0
        self._cost = 0.0
        self._started: float | None = None
        self._round: list[tuple[float, float]] = []
        self._rounds: list[list[tuple[float, float]]] = []

    def is_measured(self) -> bool:
        """Whether the step that runs now is measured."""
        if self.is_timing:
            return self._num_steps % ROUND == 0
        return (self._num_steps - self._offset) % self.every == 0

    def add_cost(self, seconds: float) -> None:
        """Count time of ours within the current step."""
        self._cost += seconds

    def skips_next(self) -> bool:
        """End a step that was not measured where the next one is not either; else nothing is done."""
        if self.is_timing or (self._num_steps + 1 - self._offset) % self.every == 0:
            return False
        self._num_steps += 1
        return True

    def end_step(self) -> None:
        """The optimizer has made its step."""
        if self.is_timing:
            self._time_step()
        self._num_steps += 1

    def _time_step(self) -> None:
        now = self._clock()
        if self._started is not None and self._num_steps >= NUM_WARM_UP:
            self._round.append((now - self._started, self._cost))
        self._started, self._cost = now, 0.0
        if len(self._round) == ROUND:
            self._rounds.append(self._round)
            self._round = []
        if self._round or len(self._rounds) < NUM_TIMED_IF_DEAR:
            return
        timing = self._timed()
        spent = sum(cost for one in self._rounds for _, cost in one)
        if len(self._rounds) == NUM_TIMED or (timing.measured > timing.step and spent > DEAR):
            self._fix(timing)

    def _timed(self) -> Timing:
        rounds = self._rounds
        unmeasured = statistics.median(cost for _, _, (_, cost) in rounds)
        in_calls = statistics.median(first + second for (_, first), (_, second), _ in rounds)
        # beside the time in our calls the step itself gets slower: its caches are cold, and memory that holds gradients
        # cannot be used again; so a measured step is compared with the one of its round that is without us
        in_step = statistics.median(
            with_us - (without - cost) + off for (with_us, _), (_, off), (without, cost) in rounds
        )
        return Timing(
            step=statistics.median(max(0.0, duration - cost) for one in rounds for duration, cost in one[1:]),
            measured=max(in_calls, in_step) - unmeasured,
            unmeasured=unmeasured,
        )

    def _fix(self, timing: Timing) -> None:
        assert self.budget is not None
        self.timing = timing
        self.every = self._agree(self.timing.every(self.budget))
        self.is_timing = False
        self._rounds = []
        self._offset = self._num_steps + 1
        self._on_fixed(self)
