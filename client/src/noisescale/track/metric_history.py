"""What a run has logged with `log_metrics()`, kept in little memory, for a sweep that reads its runs."""

import math
from array import array
from collections.abc import Mapping

MOST_POINTS = 4_000
"""Of one metric; where there would be more every second one goes. A curve of 2,000 is enough to cross a target."""


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
