"""The sweep of a task: at each batch size the learning rate that meets the hardest target in the fewest steps."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from noisescale_lab.reproduce.claim.critical_fit import fit
from noisescale_lab.reproduce.claim.effort import Effort
from noisescale_lab.reproduce.claim.stacked_trial import SharedStream, steps_of, train_rates
from noisescale_lab.reproduce.task import Task
from noisescale_lab.sweep.trial import Trial

FIRST_RATE = {"sgd": 0.2, "momentum": 0.02, "adam": 0.01}
FIRST_BATCH = 64
"""In units, so that examples of many units begin with fewer of them."""

SMALLEST_FIRST_BATCH = 16
COARSE_OCTAVES = (-4.0, -2.0, 0.0, 2.0, 4.0)
FINE_OCTAVES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The search starts with both at the first batch size; later ones start with the fine grid at their neighbour's rate.

Half octaves cost next to nothing in the same stack, and every round that is saved is a training."""

MOST_STEPS = 6_000
SLACK = 3.0
"""By theory a smaller batch needs steps in proportion at most; it is given three times that."""

FLAT = 0.85
"""Steps at a larger batch over those at a smaller one, above which the smaller one is large enough."""

LEAST_SHIFT = 0.075
"""In octaves: nearer to the best rate than 5 % a parabola's lowest point is not worth a run."""


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

    def best(self, guess: float, *, is_first: bool) -> Trial:
        """The best trial: a grid of √2 over two octaves, extended while the best is at its edge, refined by a parabola.

        Args:
            guess: In the middle of the grid.
            is_first: Whether the guess may be far off, so that a coarse grid comes before.
        """
        middle = self._try(guess, COARSE_OCTAVES) if is_first else 0.0
        best = self._try(guess, [middle + octave for octave in FINE_OCTAVES])
        while math.isfinite(self._steps(best)) and not {best - 0.5, best + 0.5} <= self.trials.keys():
            best = self._try(guess, [best + octave for octave in FINE_OCTAVES])
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
        return steps_of(self.trials[octave], self._task.targets[-1], self._task.goal)

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
        first = max(SMALLEST_FIRST_BATCH, FIRST_BATCH // self._task.units_per_example)
        self._tune(first, FIRST_RATE[self._task.optimizer.name], MOST_STEPS, is_first=True)
        while (batch := self._next()) is not None:
            self._from_neighbour(batch, min(self.best, key=lambda known: abs(math.log(known / batch))))

    def target(self, place: int) -> float:
        """A target of the task, from easy to hard."""
        return self._task.targets[place]

    def points(self, target: float) -> list[tuple[int, float]]:
        """Batch sizes with the fewest steps to a target over all rates tried there; those that met it."""
        found: dict[int, float] = {}
        for trial in self.trials:
            steps = steps_of(trial, target, self._task.goal)
            batch = trial.setting.batch_size
            if steps < found.get(batch, math.inf):
                found[batch] = steps
        return sorted(found.items())

    def _next(self) -> int | None:
        """The next batch size: larger ones first, as they take the fewest steps; then gaps; None at the end.

        The ends lie `reach` times beyond B_crit on either side, to the next power of two.
        """
        low, high = min(self.best), max(self.best)
        fitted = fit(self.points(self._task.targets[-1]))
        reach, ratio, widest = self._effort.reach, self._effort.batch_ratio, self._effort.widest
        if fitted is None:
            top, bottom = (low if self._is_flat() else widest), 1
        else:
            top, bottom = _power_above(fitted.critical_batch * reach), _power_below(fitted.critical_batch / reach)
        if high < min(top, widest) and math.isfinite(self._steps_at(high)):
            return min(high * ratio, top, widest)
        if low > bottom and self._steps_at(low) * ratio < MOST_STEPS:
            return max(low // ratio, bottom)
        if fitted is None or fitted.num_points >= self._effort.num_batches:
            return None
        return self._in_a_gap(fitted.critical_batch)

    def _is_flat(self) -> bool:
        """Whether the two largest batch sizes take nearly as many steps, so that B_crit lies below."""
        *_, below, above = 0, *sorted(self.best)
        return below > 0 and self._steps_at(above) > FLAT * self._steps_at(below)

    def _in_a_gap(self, critical_batch: float) -> int | None:
        """A power of two between tried batch sizes, the nearest to B_crit; None where there is none."""
        between = [
            below << octave
            for below, above in pairwise(sorted(self.best))
            for octave in range(1, int(math.log2(above / below)))
        ]
        return min(between, key=lambda batch: abs(math.log(batch / critical_batch)), default=None)

    def _steps_at(self, batch: int) -> float:
        return steps_of(self.best[batch], self._task.targets[-1], self._task.goal)

    def _from_neighbour(self, batch: int, neighbour: int) -> None:
        ratio = batch / neighbour
        known = self.best[neighbour]
        factor = ratio if self._task.optimizer.class_name == "SGD" and ratio < 1 else math.sqrt(ratio)
        limit = min(float(MOST_STEPS), math.ceil(SLACK * self._steps_at(neighbour) * max(1.0, neighbour / batch)) + 10)
        self._tune(batch, known.setting.lr * factor, limit, is_first=False)

    def _tune(self, batch: int, guess: float, limit: float, *, is_first: bool) -> None:
        search = RateSearch(self._task, batch, self.seeds, limit)
        self.best[batch] = search.best(guess, is_first=is_first)
        self.trials += search.trials.values()
        rate, steps = self.best[batch].setting.lr, self._steps_at(batch)
        self._progress(f"{self._task.name}: batch {batch:,}, rate {rate:.3g}, {steps:,.1f} steps")


def _power_above(number: float) -> int:
    """The next power of two, at least 1."""
    return 1 << max(0, math.ceil(math.log2(number)))


def _power_below(number: float) -> int:
    """The last power of two, at least 1."""
    return 1 << max(0, math.floor(math.log2(number)))
