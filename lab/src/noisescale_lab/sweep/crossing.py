"""Steps to a target: where an averaged curve first reaches it."""

import math
from dataclasses import dataclass

from noisescale_lab.sweep.trial import Curve, Goal


@dataclass(frozen=True, slots=True)
class StepsToTarget:
    """Where a target was reached, inside (low, high].

    Attributes:
        steps: Interpolated; None where the target was not reached.
        low: Last evaluation before the target, in steps; the end of the curve where it was not reached.
        high: First evaluation past it; infinite where it was not reached.
    """

    steps: float | None
    low: float
    high: float


def steps_to_target(curve: Curve, target: float, goal: Goal) -> StepsToTarget:
    """The first evaluation at the target or past it, interpolated back on log scales.

    A loss is close to a power of the step between neighbouring evaluations; where a value or a step is not positive
    the line is straight.
    """
    sign = 1.0 if goal == "min" else -1.0
    for place, (step, value) in enumerate(zip(curve.steps, curve.values, strict=True)):
        if sign * value <= sign * target:
            if place == 0:
                # nothing was seen before, so all below its step is possible; a target takes at least one step
                seen_at = max(float(step), 1.0)
                return StepsToTarget(seen_at, 0.0, seen_at)
            before, from_value = curve.steps[place - 1], curve.values[place - 1]
            share = _share(from_value, target, value)
            return StepsToTarget(_between(before, step, share), float(before), float(step))
    return StepsToTarget(None, max(float(curve.steps[-1]), 1.0) if curve.steps else 0.0, math.inf)


def _share(first: float, target: float, last: float) -> float:
    if min(first, target, last) > 0:
        first, target, last = math.log(first), math.log(target), math.log(last)
    return (target - first) / (last - first)


def _between(first: float, last: float, share: float) -> float:
    if first > 0:
        return math.exp(math.log(first) + share * math.log(last / first))
    return first + share * (last - first)
