"""A number with the ends of its interval."""

from dataclasses import dataclass


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
