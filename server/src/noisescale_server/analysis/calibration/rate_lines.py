"""How the path of a run's parameters tells its learning rate here, by runs whose best rate a sweep has found.

A task's readings lie off the published lines all alike, so a few runs of a task, at whatever rates, place the lines of
the next one; runs of other tasks do so as far as tasks of a project are alike. All is normal, the spreads are known.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from noisescale_core.advice.learning_rate.rate_coefficients import Line, OwnLines, PushLine, Schedule, coefficients

OF_FAMILY, BETWEEN_RUNS = 0.2, 0.75
BETWEEN_TASKS = math.sqrt(1 - OF_FAMILY**2 - BETWEEN_RUNS**2)
"""Standard deviations of a reading's distance from its published line, in units of that line's scatter: of the mean of
a project's tasks, of a run about its task, and of a task about that mean; of a task that nobody has seen all together.

On the design tasks runs of one task mostly scatter by 0.3 to 0.7 about their own lines. But the slope is the task's
own, too, and its best rate is not known exactly: with 0.57 verdicts there were 1.3 times as far off as they stated,
with 0.75 they are as far off (`benchmark_rates.py --design`)."""

FARTHEST = 3.0
"""Scatters that a run counts as off at most: one that got stuck says nothing of others."""

REACH = 2.5
"""Octaves from the best rate up to which a run counts: farther off lines are no lines."""


@dataclass(frozen=True, slots=True)
class KnownRate:
    """A run whose best learning rate is known, at the shares of the plan at which the lines stand.

    Attributes:
        octaves: log₂(rate / best rate).
        ratios: q; None where it is not known.
        pushes: asinh(SCALE_OF_PUSH · push); None where it is not known.
    """

    octaves: float
    ratios: tuple[float | None, ...]
    pushes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class KnownRates:
    """Those of one sweep.

    Attributes:
        error: Standard deviation of log₂ of the best rate, which all of them share.
        runs: Of one family of optimizers and one schedule.
    """

    error: float
    runs: tuple[KnownRate, ...]


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution.

    Attributes:
        mean: Its mean.
        sd: Its standard deviation.
    """

    mean: float
    sd: float

    def seen(self, other: "Normal") -> "Normal":
        """What is known after an independent measurement of the same.

        Args:
            other: The measurement.
        """
        own, its = self.sd**-2, other.sd**-2
        return Normal((own * self.mean + its * other.mean) / (own + its), (own + its) ** -0.5)


@dataclass(frozen=True, slots=True)
class _Column:
    name: Literal["ratios", "pushes"]
    place: int

    def of(self, run: KnownRate) -> float | None:
        values: tuple[float | None, ...] = getattr(run, self.name)
        return values[self.place]


def own_lines(
    family: str, schedule: Schedule, own: tuple[KnownRates, ...], others: tuple[tuple[KnownRates, ...], ...]
) -> OwnLines | None:
    """The lines for a new run of a task; None where no run says anything.

    Args:
        family: Of optimizers, one that the core knows.
        schedule: Of the learning rate.
        own: Sweeps of the task.
        others: Of each other task.
    """
    num_own = sum(len(sweep.runs) for sweep in own)
    num_others = sum(len(sweep.runs) for task in others for sweep in task)
    if not num_own + num_others:
        return None
    known = coefficients().families[family]
    of_push = known.pushes.get(schedule, ())
    lines, pushes = list[Line](), list[PushLine]()
    for place, line in enumerate(known.lines[schedule]):
        by_ratio = _next_run(line, own, others, _Column("ratios", place))
        lines.append(_moved(line, by_ratio))
        if of_push:
            push = of_push[place]
            by_push = _next_run(push.line, own, others, _Column("pushes", place))
            pushes.append(PushLine(_moved(push.line, by_push), push.both_sd * (by_ratio.sd + by_push.sd) / 2))
    return OwnLines(tuple(lines), tuple(pushes), _said(num_own, num_others))


def _next_run(
    line: Line,
    own: Sequence[KnownRates],
    others: Sequence[Sequence[KnownRates]],
    column: _Column,
) -> Normal:
    """How far the next run of the task lies off a line, in its scatters."""
    mean_of_tasks = Normal(0.0, OF_FAMILY)
    for task in others:
        for one in _told(task, line, column):
            mean_of_tasks = mean_of_tasks.seen(Normal(one.mean, math.hypot(one.sd, BETWEEN_TASKS)))
    of_task = Normal(mean_of_tasks.mean, math.hypot(mean_of_tasks.sd, BETWEEN_TASKS))
    for one in _told(own, line, column):
        of_task = of_task.seen(one)
    return Normal(of_task.mean, math.hypot(of_task.sd, BETWEEN_RUNS))


def _told(sweeps: Sequence[KnownRates], line: Line, column: _Column) -> Sequence[Normal]:
    """How far a task lies off a line by all of its sweeps, in the line's scatters; empty where none says anything."""
    told = [one for sweep in sweeps if (one := _mean_off(sweep, line, column)) is not None]
    return [functools.reduce(Normal.seen, told)] if told else ()


def _mean_off(sweep: KnownRates, line: Line, column: _Column) -> Normal | None:
    off = [
        max(-FARTHEST, min(FARTHEST, (value - line.offset - line.slope * run.octaves) / line.scatter))
        for run in sweep.runs
        if (value := column.of(run)) is not None
    ]
    if not off:
        return None
    of_best_rate = abs(line.slope) * sweep.error / line.scatter
    return Normal(fmean(off), math.hypot(BETWEEN_RUNS / math.sqrt(len(off)), of_best_rate))


def _moved(line: Line, found: Normal) -> Line:
    return Line(line.slope, line.offset + line.scatter * found.mean, line.scatter * found.sd)


def _said(num_own: int, num_others: int) -> str:
    if num_own:
        return f"Calibrated here on {num_own} {'runs' if num_own > 1 else 'run'} of this task."
    return f"Calibrated here on {num_others} {'runs' if num_others > 1 else 'run'} of other tasks."
