"""Whether larger batches end at a worse metric: at equal steps, at equal examples, and with all the time they had.

Learning rates are chosen on the same runs that are compared, at each batch size alike.

Source of the question and of the three budgets: Shallue et al. 2018, arXiv:1811.03600, section 4.7.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import CommonCurves
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, by_batch_size

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
        is_still_improving: The mean over the seeds is best at its end, so more time would have bettered it.
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


def qualities(settings: Sequence[Setting], *, level: float) -> tuple[Quality, ...]:
    """The three comparisons; none for fewer than two batch sizes with a setting that did not diverge.

    Args:
        settings: In the order of `settings_of`.
        level: Confidence level of the differences.
    """
    sizes = [
        [_Runs(setting.batch_size, setting.lr, CommonCurves.of(setting.curves)) for setting in here if setting.curves]
        for _, here in by_batch_size(settings)
    ]
    sizes = [here for here in sizes if here]
    if len(sizes) < 2:
        return ()
    steps = min(max(runs.last_step for runs in here) for here in sizes)
    examples = min(max(runs.batch_size * runs.last_step for runs in here) for here in sizes)
    return (
        _quality("equal_steps", steps, sizes, level),
        _quality("equal_examples", examples, sizes, level),
        _quality("large_budget", None, sizes, level),
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """The seeds of one setting."""

    batch_size: float
    lr: float
    together: CommonCurves

    @property
    def last_step(self) -> float:
        """Up to where all seeds went."""
        return self.together.steps[-1]

    def has_seen(self, limit: float) -> bool:
        """Whether the runs were evaluated before a step and went on to it: else they show other training."""
        return self.together.steps[0] <= limit and math.floor(limit) <= self.last_step


def _quality(budget: Budget, at: float | None, sizes: Sequence[Sequence[_Runs]], level: float) -> Quality:
    sign = 1.0 if sizes[0][0].together.direction is Direction.MIN else -1.0
    best: list[_Reading] = []
    for here in sizes:
        if at is None:
            readings = [_best_reading(runs, sign) for runs in here]
        else:
            limit = at if budget == "equal_steps" else at / here[0].batch_size
            readings = [_reading_at(runs, limit, sign) for runs in here if runs.has_seen(limit)]
        if readings:
            best.append(min(readings, key=lambda reading: sign * fmean(reading.values)))
    points = tuple(_point(reading, best[0], level) for reading in best)
    verdict = _verdict(points, budget, sign)
    return Quality(budget, at, points, verdict, _explained(verdict, points, budget))


def _best_reading(runs: _Runs, sign: float) -> _Reading:
    """The seeds where their mean is best: each seed's own best would read low, by its noise."""
    place = _best_place(runs, sign)
    is_still_improving = place == len(runs.together.steps) - 1
    return _Reading(runs.batch_size, runs.lr, tuple(runs.together.values[:, place].tolist()), is_still_improving)


def _reading_at(runs: _Runs, limit: float, sign: float) -> _Reading:
    """The seeds at a step, between evaluations on a straight line in log steps."""
    along = np.log1p(runs.together.steps)
    values = tuple(float(np.interp(math.log1p(limit), along, row)) for row in runs.together.values)
    return _Reading(runs.batch_size, runs.lr, values, runs.together.steps[_best_place(runs, sign)] >= limit)


def _best_place(runs: _Runs, sign: float) -> int:
    return int(np.argmin(sign * runs.together.values.mean(axis=0)))


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
    half = float(stdtrit(freedom, 0.5 + level / 2)) * math.sqrt(total)
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
