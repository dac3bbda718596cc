"""What a job knows of its run when it is asked for advice."""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from noisescale.description import RunDescription
from noisescale.window.run_history import RunHistory
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate

MOST_POINTS = 4_000
"""Of one metric; where there would be more every second one goes. A curve of 2,000 is enough to cross a target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The measurements of one optimizer.

    Attributes:
        description: What the run is called and made of.
        optimizer: Class of the optimizer; None where none is watched.
        noise_scale: Of the latest window, in examples.
        has_signal: The run has shown a gradient.
        history: What was spent.
        batch_size: In use now, in examples; None while unknown.
        newest_step: The last optimizer step that was logged.
        has_ended: It takes no more steps.
        is_silent: Another rank of the job has the numbers.
        divergence: Since when loss or gradients are not finite; None where they are.
        noise_scale_step: The last step that is in the noise scale.
        rate_off: How far the learning rate is off; None where it is not, or nobody knows.
    """

    description: RunDescription
    optimizer: str | None
    noise_scale: NoiseScaleEstimate
    has_signal: bool
    history: RunHistory
    batch_size: float | None
    newest_step: int
    has_ended: bool
    is_silent: bool
    divergence: Divergence | None = None
    noise_scale_step: int | None = None
    rate_off: RateOff | None = None


# What a run has logged with `log_metrics()`, kept in little memory, for a sweep that reads its runs.


class MetricHistory:
    """Steps and values of every metric, in the order in which they were logged."""

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, step: int, values: Mapping[str, float | None]) -> None:
        """Add numbers of a step; None is a value that was not finite."""
        for name, value in values.items():
            steps, kept = self._by_name.setdefault(name, (array("q"), array("d")))
            steps.append(step)
            kept.append(math.nan if value is None else value)
            if len(steps) > MOST_POINTS:
                # the newest stays, as a target may be reached there
                self._by_name[name] = steps[::-2][::-1], kept[::-2][::-1]

    def of(self, name: str) -> list[tuple[int, float]]:
        """Steps and values of a metric, not a number where it was not finite; empty where it was never logged."""
        steps, values = self._by_name.get(name, ((), ()))
        return list(zip(steps, values, strict=True))

    @property
    def names(self) -> list[str]:
        """What was logged."""
        return sorted(self._by_name)
