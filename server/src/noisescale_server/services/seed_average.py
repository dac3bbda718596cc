"""The metric averaged over the seeds of one setting, where it crosses a target, and how sure that is.

Averaged first, then crossed: crossing seed by seed reads low, since noise crosses early.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.batch_sweep.sweep import Repeats
from noisescale_server.analysis.steps_to_target.steps import StepsToTarget
from noisescale_server.services.sweep_curves import RunCurve
from noisescale_server.services.sweeps import Goal

Points = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class SeedAverage:
    """Steps to a target of the averaged metric.

    Attributes:
        num_seeds: Runs that were averaged.
        steps: Steps to the target.
        repeats: The same with the scatter of single seeds; None for fewer than three, or where leaving one out does
            not reach the target.
        last_value: Of the averaged metric, how far from the target in the direction of the goal.
    """

    num_seeds: int
    steps: StepsToTarget
    repeats: Repeats | None
    last_value: float

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better: steps, then how near the end came to the target."""
        return math.inf if self.steps.steps is None else self.steps.steps, self.last_value


def average(curves: Sequence[RunCurve], target: float, goal: Goal) -> SeedAverage:
    """The average of a setting's runs and its crossing."""
    mean = mean_curve(curves)
    steps = crossing(mean, target, goal)
    last = mean[-1][1] if goal == "min" else -mean[-1][1]
    return SeedAverage(len(curves), steps, _repeats(curves, steps, target, goal), last)


def mean_curve(curves: Sequence[RunCurve]) -> Points:
    """The mean at every step at which all were evaluated; of the first run alone where there is no such step."""
    common = set(curves[0].steps).intersection(*(curve.steps for curve in curves[1:]))
    if not common:
        return list(zip(curves[0].steps, curves[0].values, strict=True))
    by_step = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    return [(step, math.fsum(values[step] for values in by_step) / len(by_step)) for step in sorted(common)]


def crossing(points: Points, target: float, goal: Goal) -> StepsToTarget:
    """The first evaluation at the target or past it, interpolated on log scales where numbers are positive."""
    sign = 1.0 if goal == "min" else -1.0
    place = next((place for place, (_, value) in enumerate(points) if sign * value <= sign * target), None)
    if place is None:
        return StepsToTarget.beyond(max(points[-1][0], 1))
    step, value = points[place]
    if place == 0:
        return StepsToTarget.at(max(step, 1), after=0.0)
    before, from_value = points[place - 1]
    share = _share(from_value, target, value)
    steps = before * (step / before) ** share if before > 0 else share * step
    return StepsToTarget.at(min(max(steps, before), step), after=before, seen_at=step)


def _repeats(curves: Sequence[RunCurve], steps: StepsToTarget, target: float, goal: Goal) -> Repeats | None:
    """The scatter of log S over seeds, by leaving out each in turn.

    The variance of log S of the average is (n - 1) / n Σ (θ₋ᵢ - θ̄)² (Efron & Tibshirani 1993, eq. 11.5), a single
    seed's n times that, and `squares` n - 1 times a single seed's.
    """
    if len(curves) < 3 or steps.steps is None:
        return None
    left_out = [
        crossing(mean_curve([*curves[:place], *curves[place + 1 :]]), target, goal).steps
        for place in range(len(curves))
    ]
    logs = [math.log(value) for value in left_out if value is not None]
    if len(logs) < len(curves):
        return None
    mean = math.fsum(logs) / len(logs)
    squares = (len(logs) - 1) ** 2 * math.fsum((value - mean) ** 2 for value in logs)
    return Repeats(len(logs), math.log(steps.steps), squares)


def _share(first: float, target: float, last: float) -> float:
    if min(first, target, last) > 0:
        first, target, last = math.log(first), math.log(target), math.log(last)
    return (target - first) / (last - first)
