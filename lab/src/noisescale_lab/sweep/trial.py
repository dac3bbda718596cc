"""Runs of a sweep: what was asked, and the curve that came."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from noisescale_core.errors import ConfigError

Goal = Literal["min", "max"]
Status = Literal["complete", "infeasible", "incomplete"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Batch size in examples, and learning rate: what the seeds of one trial share."""

    batch_size: int
    lr: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One seed's evaluations.

    Attributes:
        seed: Which repeat.
        steps: Optimizer steps before each evaluation, rising.
        values: The metric there; all finite.
        run_id: Of the run that it was read from; None where it was yielded.
    """

    seed: int
    steps: tuple[int, ...]
    values: tuple[float, ...]
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """All seeds of one setting, evaluated at the same steps.

    Attributes:
        setting: Batch size and learning rate.
        status: Complete; infeasible: a seed was not finite any more; incomplete: the budget ended it.
        curves: One a seed.
        seconds: How long it took.
    """

    setting: Setting
    status: Status
    curves: tuple[Curve, ...]
    seconds: float = 0.0

    @property
    def last_step(self) -> int:
        """Steps that each seed took up to the last evaluation."""
        return max((curve.steps[-1] for curve in self.curves if curve.steps), default=0)

    @property
    def steps(self) -> int:
        """Optimizer steps of all seeds."""
        return sum(curve.steps[-1] for curve in self.curves if curve.steps)

    @property
    def examples(self) -> int:
        """Examples of all seeds."""
        return self.steps * self.setting.batch_size

    def mean_curve(self) -> Curve:
        """The metric averaged over the seeds, where all have been evaluated; to cross a target after averaging.

        Crossing a target seed by seed and averaging the steps reads low: noise crosses early.
        """
        length = min((len(curve.steps) for curve in self.curves), default=0)
        if length == 0:
            return Curve(-1, (), ())
        rows = zip(*(curve.values[:length] for curve in self.curves), strict=True)
        means = tuple(math.fsum(row) / len(row) for row in rows)
        return Curve(-1, self.curves[0].steps[:length], means)

    def to_json(self) -> dict[str, object]:
        """As a state file keeps it."""
        return {
            "batch_size": self.setting.batch_size,
            "lr": self.setting.lr,
            "status": self.status,
            "seconds": self.seconds,
            "curves": [
                {
                    "seed": curve.seed,
                    "steps": list(curve.steps),
                    "values": list(curve.values),
                    "run_id": curve.run_id,
                }
                for curve in self.curves
            ],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> "Trial":
        """From a state file.

        Raises:
            ConfigError: If a field is missing or not of its kind.
        """
        try:
            rows = content["curves"]
            assert isinstance(rows, list)
            curves = tuple(
                Curve(int(row["seed"]), tuple(row["steps"]), tuple(row["values"]), row.get("run_id")) for row in rows
            )
            setting = Setting(int(str(content["batch_size"])), float(str(content["lr"])))
            status = content["status"]
            assert status in ("complete", "infeasible", "incomplete")
            return cls(setting, status, curves, float(str(content["seconds"])))
        except (KeyError, TypeError, ValueError, AssertionError) as error:
            raise ConfigError(f"the state file holds a trial that is none ({error!r}): delete the file") from error


def rising(steps: Sequence[int], step: int) -> bool:
    """Whether a step comes after those before."""
    return not steps or step > steps[-1]


# Steps to a target: where an averaged curve first reaches it.


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
