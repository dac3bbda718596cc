"""Whether larger batches end at a worse metric: at equal steps, at equal examples, and with all the time they had.

Pure. Learning rates are chosen on the same runs that are compared, at each batch size alike.

Source of the question and of the three budgets: Shallue et al. 2018, arXiv:1811.03600, section 4.7.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, variance
from typing import Literal

from scipy.stats import t as student_t

from noisescale_server.services.sweep_curves import RunCurve
from noisescale_server.services.sweeps import Goal

Budget = Literal["equal_steps", "equal_examples", "large_budget"]
Verdict = Literal["worse", "better", "open"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A batch size's metric minus the smallest one's, with its interval (Welch's t); in units of the metric."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class QualityPoint:
    """The metric at one batch size and its best learning rate under a budget.

    Attributes:
        batch_size: In examples.
        lr: The learning rate.
        num_seeds: Runs.
        mean: Of the metric over the seeds.
        standard_error: Of the mean; None for a single seed.
        difference: From the smallest batch size; None there, and where either has a single seed.
        is_still_improving: The best value is the last one, so more time would have bettered it.
    """

    batch_size: float
    lr: float
    num_seeds: int
    mean: float
    standard_error: float | None
    difference: Difference | None
    is_still_improving: bool


@dataclass(frozen=True, slots=True)
class Quality:
    """All batch sizes under one budget.

    Attributes:
        budget: What is equal.
        at: Steps or examples at which they are compared; None for the large budget.
        points: By batch size.
        verdict: Of the largest batch size against the smallest: worse or better beyond the interval, else open.
        explanation: In a sentence.
    """

    budget: Budget
    at: float | None
    points: tuple[QualityPoint, ...]
    verdict: Verdict
    explanation: str


@dataclass(frozen=True, slots=True)
class _Reading:
    """One setting's seeds under a budget."""

    batch_size: float
    lr: float
    values: tuple[float, ...]
    is_still_improving: bool


def qualities(curves: Sequence[RunCurve], goal: Goal, *, level: float) -> tuple[Quality, ...]:
    """The three comparisons; none for fewer than two batch sizes."""
    sizes = {curve.run.batch_size for curve in curves}
    if len(sizes) < 2:
        return ()
    longest = {size: _longest(curves, size) for size in sizes}
    steps, examples = min(longest.values()), min(size * last for size, last in longest.items())
    return (
        _quality("equal_steps", float(steps), curves, goal, level, lambda curve: steps),
        _quality("equal_examples", examples, curves, goal, level, lambda curve: examples / curve.run.batch_size),
        _quality("large_budget", None, curves, goal, level, lambda curve: math.inf),
    )


def _longest(curves: Sequence[RunCurve], batch_size: float) -> int:
    """Steps that some setting of the batch size lasted, with all its seeds."""
    here = [curve for curve in curves if curve.run.batch_size == batch_size]
    by_rate = groupby(sorted(here, key=lambda curve: curve.run.lr), key=lambda curve: curve.run.lr)
    return max(min(curve.steps[-1] for curve in seeds) for _, seeds in by_rate)


def _quality(
    budget: Budget,
    at: float | None,
    curves: Sequence[RunCurve],
    goal: Goal,
    level: float,
    most_steps: Callable[[RunCurve], float],
) -> Quality:
    sign = 1.0 if goal == "min" else -1.0
    ordered = sorted(curves, key=lambda curve: (curve.run.batch_size, curve.run.lr))
    best: list[_Reading] = []
    for _, here in groupby(ordered, key=lambda curve: curve.run.batch_size):
        settings = [list(seeds) for _, seeds in groupby(here, key=lambda curve: curve.run.lr)]
        readings = [reading for seeds in settings if (reading := _reading(seeds, budget, sign, most_steps))]
        if readings:
            best.append(min(readings, key=lambda reading: sign * fmean(reading.values)))
    points = tuple(_point(reading, best[0], level) for reading in best)
    verdict = _verdict(points, budget, sign)
    return Quality(budget, at, points, verdict, _explained(verdict, points, budget))


def _reading(
    seeds: Sequence[RunCurve], budget: Budget, sign: float, most_steps: Callable[[RunCurve], float]
) -> _Reading | None:
    """The metric at the last evaluation within the budget, or the best within it; None where there is none."""
    values, is_still_improving = [], False
    for curve in seeds:
        limit = most_steps(curve)
        within = [value for step, value in zip(curve.steps, curve.values, strict=True) if step <= limit]
        if not within or (budget != "large_budget" and _ends_early(curve, limit)):
            return None
        best = min(within, key=lambda value: sign * value)
        values.append(best if budget == "large_budget" else within[-1])
        is_still_improving = is_still_improving or within[-1] == best
    return _Reading(seeds[0].run.batch_size, seeds[0].run.lr, tuple(values), is_still_improving)


def _ends_early(curve: RunCurve, limit: float) -> bool:
    """Whether a run was stopped before the budget: its last value is then of less training."""
    return curve.steps[-1] < math.floor(limit)


def _point(reading: _Reading, smallest: _Reading, level: float) -> QualityPoint:
    count = len(reading.values)
    return QualityPoint(
        batch_size=reading.batch_size,
        lr=reading.lr,
        num_seeds=count,
        mean=fmean(reading.values),
        standard_error=math.sqrt(variance(reading.values) / count) if count > 1 else None,
        difference=None if reading is smallest else _difference(reading.values, smallest.values, level),
        is_still_improving=reading.is_still_improving,
    )


def _difference(values: Sequence[float], others: Sequence[float], level: float) -> Difference | None:
    """Welch's interval for the difference of two means; None for a single value."""
    if min(len(values), len(others)) < 2:
        return None
    parts = [variance(group) / len(group) for group in (values, others)]
    value, total = fmean(values) - fmean(others), math.fsum(parts)
    if total == 0:
        return Difference(value, value, value)
    freedoms = (len(values) - 1, len(others) - 1)
    freedom = total**2 / math.fsum(part**2 / each for part, each in zip(parts, freedoms, strict=True))
    half = float(student_t.ppf(0.5 + level / 2, freedom)) * math.sqrt(total)
    return Difference(value, value - half, value + half)


def _verdict(points: Sequence[QualityPoint], budget: Budget, sign: float) -> Verdict:
    difference = points[-1].difference if points else None
    if difference is None or (budget == "large_budget" and _is_cut_short(points)):
        return "open"
    low, high = sorted((sign * difference.low, sign * difference.high))
    return "worse" if low > 0 else "better" if high < 0 else "open"


def _is_cut_short(points: Sequence[QualityPoint]) -> bool:
    return points[0].is_still_improving or points[-1].is_still_improving


def _explained(verdict: Verdict, points: Sequence[QualityPoint], budget: Budget) -> str:
    at = {"equal_steps": "At equal steps", "equal_examples": "At equal examples", "large_budget": "Given time"}[budget]
    if len(points) < 2:
        return f"{at} fewer than two batch sizes can be compared: let runs go on past the target."
    smallest, largest, difference = points[0], points[-1], points[-1].difference
    if difference is None:
        return f"{at} nothing is tested: batch sizes {smallest.batch_size:g} and {largest.batch_size:g} need two seeds."
    if budget == "large_budget" and _is_cut_short(points):
        return f"{at} nothing is known yet: runs ended while they still improved. Let them go on past the target."
    shown = f"by {difference.value:.3g} [{difference.low:.3g}, {difference.high:.3g}]"
    word = {"worse": "worse", "better": "better", "open": "neither better nor worse beyond noise"}[verdict]
    return f"{at} batch {largest.batch_size:g} is {word} than batch {smallest.batch_size:g}, {shown}."
