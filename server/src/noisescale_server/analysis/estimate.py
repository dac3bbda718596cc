"""A number with the ends of its interval."""

import math
from dataclasses import dataclass

LARGEST_LOG = 700.0
"""Ends beyond e^±700 are none: they leave the floats."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its confidence interval.

    Attributes:
        value: The best value.
        low: Lower end; None where the data set no lower bound.
        high: Upper end; None where the data set no upper bound.
        level: Confidence level of the interval.
    """

    value: float
    low: float | None
    high: float | None
    level: float

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @classmethod
    def from_logs(cls, value: float, ends: tuple[float, float], level: float) -> "Estimate":
        """From logarithms, all ends finite."""
        low, high = ends
        return cls(math.exp(value), math.exp(low), math.exp(high), level)

    def holds(self, value: float) -> bool:
        """Whether the interval contains a value; an open side contains everything."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the data say about a quantity that they do not determine.

    Attributes:
        low: It is at least this; None where nothing is known.
        high: It is at most this; None where nothing is known.
        level: Confidence level, of the two ends together.
    """

    low: float | None
    high: float | None
    level: float

    @classmethod
    def from_logs(cls, ends: tuple[float, float], level: float) -> "Bounds":
        """From logarithms; an end that is not finite is none."""
        low, high = ends
        return cls(
            math.exp(low) if low > -LARGEST_LOG else None,
            math.exp(high) if high < LARGEST_LOG else None,
            level,
        )
