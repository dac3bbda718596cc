"""The sweep of a task: at each batch size the learning rate that meets the hardest target in the fewest steps."""

import math
from collections.abc import Callable, Sequence

from noisescale.reproduce.claim.critical_fit import fit
from noisescale.reproduce.claim.effort import Effort
from noisescale.reproduce.claim.stacked_trial import SharedStream, steps_of, train_rates
from noisescale.reproduce.task import Task
from noisescale.sweeps.trial import Trial

FIRST_RATE = {"sgd": 0.2, "adam": 0.01}
FIRST_BATCH = 64
FIRST_OCTAVES = (-4.0, -2.0, 0.0, 2.0, 4.0)
"""Where the search starts at the first batch size; later ones start at their neighbour's best rate."""

MOST_STEPS = 6_000
SLACK = 3.0
"""By theory a smaller batch needs steps in proportion at most; it is given three times that."""

LEAST_SHIFT = 0.075
"""In octaves: nearer to the best rate than 5 % a parabola's lowest point is not worth a run."""

SMALLEST_BATCH = 2

FEWEST_BATCHES = 4
"""With three, one degree of freedom is left, and intervals are as good as open."""


class RateSearch:
    """Tries learning rates at one batch size, each once.

    Args:
        task: What is trained.
        batch: In examples.
        seeds: Of each rate.
        limit: Most steps of a run.

    Attributes:
        trials: By exponent of 2 over the first rate.
    """

    def __init__(self, task: Task, batch: int, seeds: Sequence[int], limit: float) -> None:
        self._task, self._batch, self._seeds, self._limit = task, batch, seeds, limit
        self._stream = SharedStream()
        self.trials: dict[float, Trial] = {}

    def best(self, guess: float, octaves: Sequence[float] = (-1.0, 0.0, 1.0)) -> Trial:
        """The best trial: a grid of 2, extended while the best is at its edge, refined by √2 and by a parabola."""
        best = self._try(guess, octaves)
        while math.isfinite(self._steps(best)) and best in (min(self.trials), max(self.trials)):
            best = self._try(guess, (best - 1, best + 1))
        if math.isfinite(self._steps(best)):
            best = self._try(guess, (best - 1, best + 1))
            best = self._try(guess, (best - 0.5, best + 0.5))
            shift = self._vertex(best)
            if abs(shift) >= LEAST_SHIFT:
                best = self._try(guess, (best + shift,))
        return self.trials[best]

    def _try(self, guess: float, octaves: Sequence[float]) -> float:
        new = [octave for octave in octaves if octave not in self.trials]
        if new:
            known = min((self._steps(octave) for octave in self.trials), default=math.inf)
            found = train_rates(
                self._task,
                batch=self._batch,
                rates=[guess * 2**octave for octave in new],
                seeds=self._seeds,
                limit=self._limit,
                best=known,
                stream=self._stream,
            )
            self.trials.update(zip(new, found, strict=True))
        return min(self.trials, key=lambda octave: (self._steps(octave), abs(octave)))

    def _steps(self, octave: float) -> float:
        return steps_of(self.trials[octave], self._task.targets[-1])

    def _vertex(self, best: float) -> float:
        """Where the parabola through log steps half an octave to either side is lowest, in octaves from the best."""
        sides = [best - 0.5, best + 0.5]
        if not all(side in self.trials for side in sides):
            return 0.0
        before, at, after = (self._steps(octave) for octave in (sides[0], best, sides[1]))
        if math.isinf(before + after):
            return 0.0
        left, middle, right = math.log(before), math.log(at), math.log(after)
        curvature = left - 2 * middle + right
        return 0.0 if curvature <= 0 else 0.25 * (left - right) / curvature


class TunedSweep:
    """Batch sizes on both sides of the critical one.

    Args:
        task: What is trained.
        effort: How many batch sizes and seeds.
        seed: The first of the seeds.
        progress: Is told each batch size.
    """

    def __init__(self, task: Task, effort: Effort, seed: int, progress: Callable[[str], None]) -> None:
        self._task, self._effort, self._progress = task, effort, progress
        self.seeds = tuple(range(seed, seed + effort.num_seeds(task.name)))
        self.trials: list[Trial] = []
        self.best: dict[int, Trial] = {}

    def run(self) -> None:
        """Search at a first batch size, then go up and down from it until both ends are far from B_crit."""
        self._tune(FIRST_BATCH, FIRST_RATE[self._task.optimizer.name], MOST_STEPS, FIRST_OCTAVES)
        ratio = self._effort.batch_ratio
        while (batch := self._next(min(self.best), max(self.best))) is not None:
            self._from_neighbour(batch, batch * ratio if batch * ratio in self.best else batch // ratio)

    def target(self, place: int) -> float:
        """A target of the task, from easy to hard."""
        return self._task.targets[place]

    def points(self, target: float) -> list[tuple[int, float]]:
        """Batch sizes with the fewest steps to a target over all rates tried there; those that met it."""
        found: dict[int, float] = {}
        for trial in self.trials:
            steps = steps_of(trial, target)
            batch = trial.setting.batch_size
            if steps < found.get(batch, math.inf):
                found[batch] = steps
        return sorted(found.items())

    def _next(self, low: int, high: int) -> int | None:
        """The next batch size: larger ones first, as they take the fewest steps; None at the end."""
        target = self._task.targets[-1]
        fitted = fit(self.points(target))
        reach, ratio = self._effort.reach, self._effort.batch_ratio
        at_low, at_high = (steps_of(self.best[batch], target) for batch in (low, high))
        can_rise = high * ratio <= self._effort.widest and math.isfinite(at_high)
        can_fall = low // ratio >= SMALLEST_BATCH and math.isfinite(at_low) and at_low * ratio < MOST_STEPS
        if fitted is None:
            return high * ratio if can_rise else low // ratio if can_fall else None
        if can_rise and high < fitted.critical_batch * reach:
            return high * ratio
        if can_fall and low * reach > fitted.critical_batch:
            return low // ratio
        if fitted.num_points < FEWEST_BATCHES and can_rise:
            return high * ratio
        return low // ratio if fitted.num_points < FEWEST_BATCHES and can_fall else None

    def _from_neighbour(self, batch: int, neighbour: int) -> None:
        ratio = batch / neighbour
        known = self.best[neighbour]
        factor = ratio if self._task.optimizer.name == "sgd" and ratio < 1 else math.sqrt(ratio)
        steps = steps_of(known, self._task.targets[-1])
        limit = min(float(MOST_STEPS), math.ceil(SLACK * steps * max(1.0, neighbour / batch)) + 10)
        self._tune(batch, known.setting.lr * factor, limit, (-1.0, 0.0, 1.0))

    def _tune(self, batch: int, guess: float, limit: float, octaves: Sequence[float]) -> None:
        search = RateSearch(self._task, batch, self.seeds, limit)
        best = search.best(guess, octaves)
        self.trials += search.trials.values()
        self.best[batch] = best
        steps = steps_of(best, self._task.targets[-1])
        self._progress(f"{self._task.name}: batch {batch:,}, rate {best.setting.lr:.3g}, {steps:,.1f} steps")
