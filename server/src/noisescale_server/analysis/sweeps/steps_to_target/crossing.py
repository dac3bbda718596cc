"""The first step at which a run's metric passed a target."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget


class Direction(StrEnum):
    """Which values of a metric are better."""

    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """A run's metric over its evaluations.

    Attributes:
        steps: Optimizer steps of the evaluations, rising.
        values: The metric at each, in its own unit; not finite where the run diverged.
        direction: Which values are better.
    """

    steps: tuple[float, ...]
    values: tuple[float, ...]
    direction: Direction

    def __post_init__(self) -> None:
        """Check the evaluations.

        Raises:
            AnalysisError: If there are none, or steps and values differ in number, or steps do not rise from 0 on.
        """
        if not self.steps or len(self.steps) != len(self.values):
            raise AnalysisError(f"need as many values as steps and at least one, got {len(self.values)} values")
        if self.steps[0] < 0 or any(b <= a for a, b in zip(self.steps, self.steps[1:], strict=False)):
            raise AnalysisError("steps of a metric must rise and not be negative: sort them and keep one value each")


def causal_mean(values: Sequence[float], window: int) -> tuple[float, ...]:
    """The mean of each value and the `window` - 1 before it, of fewer at the start; it never looks ahead.

    Raises:
        AnalysisError: Unless window >= 1.
    """
    if window < 1:
        raise AnalysisError(f"window must be at least 1 evaluation, got {window}")
    if window == 1:
        return tuple(values)
    shown = (values[max(0, place + 1 - window) : place + 1] for place in range(len(values)))
    return tuple(math.fsum(part) / len(part) for part in shown)


def steps_to_target(curve: MetricCurve, target: float, *, window: int = 1) -> StepsToTarget:
    """The first crossing, interpolated; not reached by the run's end; or infeasible, where the run diverged first.

    Between neighbouring evaluations a loss is close to a power of the step, so the line is straight on log scales;
    where a value or a step is not positive it is straight in that one itself.

    Args:
        curve: Evaluations of one run, or of the mean over seeds: crossing each seed and then averaging reads low.
        target: In the metric's unit; a value equal to it has reached it.
        window: Evaluations in the causal mean that is compared with the target.

    Raises:
        AnalysisError: If the window is below 1, or the target is not finite.
    """
    if not math.isfinite(target):
        raise AnalysisError(f"target must be a finite number, got {target}")
    alive = next((i for i, value in enumerate(curve.values) if not math.isfinite(value)), len(curve.values))
    values = causal_mean(curve.values[:alive], window)
    sign = 1.0 if curve.direction is Direction.MAX else -1.0
    place = next((i for i, value in enumerate(values) if sign * (value - target) >= 0), None)
    if place is None:
        return StepsToTarget.beyond(max(curve.steps[-1], 1.0)) if alive == len(curve.values) else StepsToTarget.never()
    seen_at = curve.steps[place]
    if place == 0:
        # nothing was seen before the first evaluation, so all below its step is possible
        return StepsToTarget.at(max(seen_at, 1.0), after=0.0, seen_at=max(seen_at, 1.0))
    after = curve.steps[place - 1]
    share = _share(values[place - 1], target, values[place])
    return StepsToTarget.at(_between(after, seen_at, share), after=after, seen_at=seen_at)


def _share(first: float, target: float, last: float) -> float:
    """How much of the way from the first value to the last the target is."""
    if min(first, target, last) > 0:
        first, target, last = math.log(first), math.log(target), math.log(last)
    return (target - first) / (last - first)


def _between(after: float, seen_at: float, share: float) -> float:
    """A step at a share of the way, in log steps; in steps from step 0."""
    if after <= 0:
        return after + share * (seen_at - after) if share > 0 else seen_at
    return min(max(after * math.exp(share * math.log(seen_at / after)), after), seen_at)
