"""The metric averaged over the seeds of one setting, where it crosses a target, and how sure that is.

Averaged first, then crossed: crossing seed by seed reads low, since noise crosses early.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.sweeps.points.hyperbola import Array
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import Repeats
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve, steps_to_target

FEW_IN_COMMON = 0.5
"""Of the evaluations that the least evaluated run has where all were: with fewer in common, most would go unused."""


@dataclass(frozen=True, slots=True)
class SeedAverage:
    """Steps to a target of the averaged metric.

    Attributes:
        num_seeds: Runs that were averaged.
        steps: Steps to the target.
        repeats: The same with the scatter of single seeds; None for fewer than three, where leaving one out does not
            reach the target, or where nobody asked.
        last_value: Of the averaged metric; turned round where larger is better, so that smaller is nearer.
    """

    num_seeds: int
    steps: StepsToTarget
    repeats: Repeats | None
    last_value: float

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better: steps, then how near the end came to the target."""
        return math.inf if self.steps.steps is None else self.steps.steps, self.last_value


@dataclass(frozen=True, slots=True)
class CommonCurves:
    """Runs at the steps at which all of them were evaluated; where few are, at each one's, interpolated in the others.

    Attributes:
        steps: Optimizer steps, rising, [T].
        values: The metric of each run, [N, T].
        direction: Which values are better.
    """

    steps: tuple[float, ...]
    values: Array
    direction: Direction

    @classmethod
    def of(cls, curves: Sequence[MetricCurve]) -> "CommonCurves":
        """The runs together; the first one alone where no step lies between evaluations of all."""
        common = set(curves[0].steps).intersection(*(curve.steps for curve in curves[1:]))
        first, last = max(curve.steps[0] for curve in curves), min(curve.steps[-1] for curve in curves)
        inside = [[step for step in curve.steps if first <= step <= last] for curve in curves]
        if len(common) < FEW_IN_COMMON * min(map(len, inside)) or not common:
            common = {step for steps in inside for step in steps}
        used, steps = (curves, tuple(sorted(common))) if common else (curves[:1], curves[0].steps)
        return cls(steps, np.array([_at(curve, steps) for curve in used]), curves[0].direction)

    def mean(self, weights: Array | None = None) -> MetricCurve:
        """The mean over the runs, or with a weight for each, [N]."""
        found = self.values.mean(axis=0) if weights is None else weights @ self.values / weights.sum()
        return MetricCurve(self.steps, tuple(found.tolist()), self.direction)


def _at(curve: MetricCurve, steps: Sequence[float]) -> Array:
    """The metric at these steps: as logged, and between evaluations on the line that a crossing is found on."""
    known, values = np.array(curve.steps, dtype=np.float64), np.array(curve.values, dtype=np.float64)
    # a metric near 0 or below it, and the way from step 0, are straight by themselves
    is_power = bool((values > 0).all())
    drawn = np.log(values) if is_power else values
    found: Array = np.interp(np.log1p(steps), np.log1p(known), drawn)
    found = np.exp(found) if is_power else found
    logged = dict(zip(curve.steps, curve.values, strict=True))
    return np.array([logged.get(step, between) for step, between in zip(steps, found, strict=True)], dtype=np.float64)


def seed_average(curves: Sequence[MetricCurve], target: float, *, with_repeats: bool = True) -> SeedAverage:
    """The average of a setting's runs and its crossing; the scatter of single seeds takes as many crossings again."""
    together = CommonCurves.of(curves)
    mean = together.mean()
    steps = steps_to_target(mean, target)
    last = mean.values[-1] if mean.direction is Direction.MIN else -mean.values[-1]
    repeats = _repeats(together, steps, target) if with_repeats else None
    return SeedAverage(len(together.values), steps, repeats, last)


def _repeats(together: CommonCurves, steps: StepsToTarget, target: float) -> Repeats | None:
    """The scatter of log S over seeds, by leaving out each in turn.

    The variance of log S of the average is (n - 1) / n Σ (θ₋ᵢ - θ̄)² (Efron & Tibshirani 1993, eq. 11.5), a single
    seed's n times that, and `squares` n - 1 times a single seed's.
    """
    count = len(together.values)
    if count < 3 or steps.steps is None:
        return None
    left_out = [steps_to_target(together.mean(1.0 - kept), target).steps for kept in np.eye(count)]
    logs = [math.log(value) for value in left_out if value is not None]
    if len(logs) < count:
        return None
    mean = math.fsum(logs) / count
    squares = (count - 1) ** 2 * math.fsum((value - mean) ** 2 for value in logs)
    return Repeats(count, math.log(steps.steps), squares)
