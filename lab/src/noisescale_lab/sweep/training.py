"""One trial: all seeds of a setting in step with each other, stopped as soon as its answer is known."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_lab.branch.random_states import RandomStates, begin_with
from noisescale_lab.sweep.trial import Curve, Goal, Setting, Status, Trial, rising

Evaluation = tuple[int, float]
"""Optimizer steps taken so far, and the metric there."""

ReadRun = Callable[[str, str], Sequence[Evaluation]]
"""From a run's id and a metric's name to its evaluations, as the server has them."""

Train = Callable[[int, float, int], object]
"""`train(batch_size, lr, seed)`: yields (steps so far, metric) at each evaluation; or gives the run it logs into."""


# What one training says of itself: evaluations that it yields, or the metric of a run that it logs into.


class Evaluations:
    """The evaluations of one training, one at a time.

    `train()` may yield (steps, metric); or yield its run each time it has logged the metric; or return a run, or the
    id of one, when it is done.

    Args:
        given: What `train()` gave.
        metric: Name that runs log; None: none was named.
        read_run: Asks the server for a run's metric.

    Attributes:
        run_id: Of the run that it logs into; None where it yields its evaluations.
        is_whole: All evaluations were there at once: the training has ended.
    """

    def __init__(self, given: object, metric: str | None, read_run: ReadRun) -> None:
        self.run_id: str | None = None
        self.is_whole = isinstance(given, Run | str | UUID)
        self._metric, self._read_run = metric, read_run
        self._run: Run | None = None
        self._num_read = 0
        self._waiting: deque[Evaluation] = deque()
        self._items: Iterator[Any] = iter(())
        if self.is_whole:
            self._take(given)
        elif isinstance(given, Iterable):
            self._items = iter(given)
        else:
            raise ConfigError(f"train() must yield (step, metric), or give a run or its id, got {given!r}")

    def next(self) -> Evaluation | None:
        """One more evaluation, None at the end.

        Raises:
            ConfigError: For what is neither a pair of numbers nor a run with that metric.
        """
        while not self._waiting:
            item = next(self._items, None)
            if item is None:
                return None
            self._take(item)
        return self._waiting.popleft()

    def close(self, status: Literal["finished", "failed"]) -> None:
        """Finish the run, and let a generator end its `with` and `finally` blocks."""
        if self._run is not None and not self._run.is_finished:
            self._run.finish(status)
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def _take(self, item: object) -> None:
        if isinstance(item, Run):
            self._take_run(item)
        elif isinstance(item, str | UUID):
            for _ in self._items:  # the training goes on to its end
                pass
            self.is_whole, self.run_id = True, str(item)
            self._waiting.extend(self._read_run(self.run_id, self._named()))
        else:
            self._waiting.append(_checked(item))

    def _take_run(self, run: Run) -> None:
        name = self._named()
        self._run, self.run_id = run, run.id
        if self.is_whole and not run.is_finished:
            run.finish()
        new = run.logged_metrics.of(name)[self._num_read :]
        self._num_read += len(new)
        if not new:
            said = ", ".join(run.logged_metrics.names) or "nothing; a run that is disabled keeps nothing"
            raise ConfigError(f"train() gave a run without a new value of {name!r}, it has logged {said}")
        # what is logged at step k was measured after k + 1 steps, as the server counts
        self._waiting.extend((step + 1, value) for step, value in new)

    def _named(self) -> str:
        if self._metric is None:
            raise ConfigError("train() gave a run: name the metric that it logs, as in sweep(…, metric='eval_loss')")
        return self._metric


def _checked(found: Any) -> Evaluation:
    try:
        step, value = found
        return int(step), float(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"train() must yield (step, metric), got {found!r}") from error


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

    The global generators begin with the seed, or repeats would share their first weights, and are exchanged around each
    turn: a training that draws from them draws the same as if it ran alone.
    """

    def __init__(self, train: Train, setting: Setting, seed: int, metric: str | None, read_run: ReadRun) -> None:
        self.seed = seed
        self.steps: list[int] = []
        self.values: list[float] = []
        self._states: RandomStates | None = None
        self._evaluations: Evaluations | None = None
        self._train, self._setting = train, setting
        self._metric, self._read_run = metric, read_run

    @property
    def is_whole(self) -> bool:
        """Whether the training has ended already, and is read to its end."""
        return self._evaluations is not None and self._evaluations.is_whole

    def advance(self) -> bool:
        """True after one more evaluation, False at the training's own end.

        Raises:
            ConfigError: For an evaluation that is no pair of a rising step and a number.
        """
        outer = RandomStates.now()
        if self._states is None:
            begin_with(self.seed)
        else:
            self._states.restore()
        try:
            if self._evaluations is None:
                given = self._train(self._setting.batch_size, self._setting.lr, self.seed)
                self._evaluations = Evaluations(given, self._metric, self._read_run)
            found = self._evaluations.next()
            self._states = RandomStates.now()
        finally:
            outer.restore()
        if found is None:
            return False
        step, value = found
        if not rising(self.steps, step):
            raise ConfigError(f"train() must yield rising steps, got {step} after {self.steps[-1]}")
        self.steps.append(step)
        self.values.append(value)
        return True

    def close(self, status: Literal["finished", "failed"]) -> None:
        """End the training, and the run that it logs into."""
        if self._evaluations is not None:
            self._evaluations.close(status)

    def curve(self) -> Curve:
        """Its evaluations up to the first that is not finite."""
        finite = [math.isfinite(value) for value in self.values]
        end = finite.index(False) if False in finite else len(finite)
        run_id = None if self._evaluations is None else self._evaluations.run_id
        return Curve(self.seed, tuple(self.steps[:end]), tuple(self.values[:end]), run_id)


def run_trial(
    train: Train, setting: Setting, seeds: Sequence[int], limits: Limits, *, metric: str | None, read_run: ReadRun
) -> Trial:
    """The trial, stopped at the first of its limits, or when a seed is no longer finite.

    Args:
        train: The user's training.
        setting: What is tried.
        seeds: Of its trainings.
        limits: When it ends; trainings that give whole runs have ended by themselves.
        metric: Name that runs log; None where evaluations are yielded.
        read_run: Asks the server for a run's metric.

    Raises:
        ConfigError: If evaluations do not come at the same rising steps for all seeds.
    """
    start = time.perf_counter()
    running = [_Seed(train, setting, seed, metric, read_run) for seed in seeds]
    ended: Literal["finished", "failed"] = "failed"
    try:
        status = _run_together(running, setting, limits)
        ended = "finished"
    finally:
        for one in running:
            one.close(ended)
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
        if all(one.is_whole for one in running):
            continue
        if sign * math.fsum(values) / len(values) <= sign * limits.target or step >= limits.steps:
            return "complete"
        if step * setting.batch_size * len(running) >= limits.examples:
            return "incomplete"
