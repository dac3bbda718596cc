"""One trial: all seeds of a setting in step with each other, stopped as soon as its answer is known."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from noisescale.branching.random_states import RandomStates
from noisescale.errors import ConfigError
from noisescale.sweeps.trial import Curve, Goal, Setting, Status, Trial, rising

Train = Callable[[int, float, int], Iterable[tuple[int, float]]]
"""`train(batch_size, lr, seed)`: yields (steps so far, metric) at each evaluation."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a trial ends.

    Attributes:
        target: The averaged metric has reached it.
        goal: In which direction.
        steps: So many steps were taken: it is slower than the best by enough.
        examples: So many examples are left of the budget; infinite without one.
    """

    target: float
    goal: Goal
    steps: float
    examples: float


class _Seed:
    """A training that is advanced one evaluation at a time, with random generators of its own.

    The global generators are exchanged around each turn, so that a training which draws from them draws the same as
    if it ran alone.
    """

    def __init__(self, train: Train, setting: Setting, seed: int) -> None:
        self.seed = seed
        self.steps: list[int] = []
        self.values: list[float] = []
        self._states: RandomStates | None = None
        self._evaluations: Iterator[tuple[int, float]] | None = None
        self._train, self._setting = train, setting

    def advance(self) -> bool:
        """True after one more evaluation, False at the training's own end.

        Raises:
            ConfigError: For an evaluation that is no pair of a rising step and a number.
        """
        outer = RandomStates.now()
        if self._states is not None:
            self._states.restore()
        try:
            if self._evaluations is None:
                self._evaluations = iter(self._train(self._setting.batch_size, self._setting.lr, self.seed))
            found = next(self._evaluations, None)
            self._states = RandomStates.now()
        finally:
            outer.restore()
        if found is None:
            return False
        step, value = _checked(found)
        if not rising(self.steps, step):
            raise ConfigError(f"train() must yield rising steps, got {step} after {self.steps[-1]}")
        self.steps.append(step)
        self.values.append(value)
        return True

    def close(self) -> None:
        """Let a generator end its `with` and `finally` blocks."""
        close = getattr(self._evaluations, "close", None)
        if close is not None:
            close()

    def curve(self) -> Curve:
        """Its evaluations up to the first that is not finite."""
        finite = [math.isfinite(value) for value in self.values]
        end = finite.index(False) if False in finite else len(finite)
        return Curve(self.seed, tuple(self.steps[:end]), tuple(self.values[:end]))


def run_trial(train: Train, setting: Setting, seeds: Sequence[int], limits: Limits) -> Trial:
    """The trial, stopped at the first of its limits, or when a seed is no longer finite.

    Raises:
        ConfigError: If evaluations do not come at the same rising steps for all seeds.
    """
    start = time.perf_counter()
    running = [_Seed(train, setting, seed) for seed in seeds]
    try:
        status = _run_together(running, setting, limits)
    finally:
        for one in running:
            one.close()
    return Trial(setting, status, tuple(one.curve() for one in running), time.perf_counter() - start)


def _run_together(running: Sequence[_Seed], setting: Setting, limits: Limits) -> Status:
    sign = 1.0 if limits.goal == "min" else -1.0
    while True:
        went_on = [one.advance() for one in running]
        if not any(went_on):
            return "complete"
        if not all(went_on) or len({one.steps[-1] for one in running}) > 1:
            found = sorted({one.steps[-1] for one in running if one.steps})
            raise ConfigError(
                f"train() must evaluate at the same steps for every seed, got {found} at batch size "
                f"{setting.batch_size}: evaluate at steps that do not depend on the seed"
            )
        step, values = running[0].steps[-1], [one.values[-1] for one in running]
        if not all(map(math.isfinite, values)):
            return "infeasible"
        if sign * math.fsum(values) / len(values) <= sign * limits.target or step >= limits.steps:
            return "complete"
        if step * setting.batch_size * len(running) >= limits.examples:
            return "incomplete"


def _checked(found: Any) -> tuple[int, float]:
    try:
        step, value = found
        return int(step), float(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"train() must yield (step, metric), got {found!r}") from error
