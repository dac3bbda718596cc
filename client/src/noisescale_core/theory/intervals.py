"""Positive numbers with their error on the log scale: the statistical and the model part kept apart, and combined.

Noise scales, critical batches and everything that follows from them spread by factors, not by differences, so their
errors add on the log scale. A power of an uncertain number has that power's share of its log error: a batch
√(r B_crit) at a stated price r is known twice as well, on the log scale, as B_crit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive, require_share


@dataclass(frozen=True, slots=True)
class LogError:
    """How far an interval reaches from its value, in natural logarithms.

    Attributes:
        down: log(value / low), infinite where nothing bounds the value below.
        up: log(high / value), infinite where nothing bounds it above.
    """

    down: float
    up: float

    def __post_init__(self) -> None:
        """Refuse what is no distance.

        Raises:
            DomainError: If an end lies on the wrong side of the value.
        """
        require_not_negative("the value must lie inside its interval", down=self.down, up=self.up)

    def to_power(self, exponent: float) -> "LogError":
        """The log error of the value raised to a power; a negative one exchanges the ends."""
        if exponent == 0:
            return LogError(0.0, 0.0)
        down, up = (self.down, self.up) if exponent > 0 else (self.up, self.down)
        return LogError(abs(exponent) * down, abs(exponent) * up)

    def with_independent(self, other: "LogError") -> "LogError":
        """The log error of two independent parts together: each end adds in quadrature."""
        return LogError(math.hypot(self.down, other.down), math.hypot(self.up, other.up))


@dataclass(frozen=True, slots=True)
class Interval:
    """A number between two ends.

    Attributes:
        value: The number.
        low: Lower end.
        high: Upper end, infinite where there is none.
        level: Confidence that the interval covers the truth.
    """

    value: float
    low: float
    high: float
    level: float

    def times(self, factor: float) -> "Interval":
        """The interval of an exact multiple.

        Args:
            factor: Not negative: a unit or a price.

        Raises:
            DomainError: If the factor is negative.
        """
        require_not_negative("a multiple keeps the order of the ends", factor=factor)
        # an open end of something that costs nothing costs nothing
        high = self.high * factor if factor > 0 else 0.0
        return Interval(self.value * factor, self.low * factor, high, self.level)


@dataclass(frozen=True, slots=True)
class Carried:
    """An estimate carried through a function: its interval from either error alone, and from both.

    Attributes:
        statistical: What the measurement alone leaves open.
        model: What the theory alone leaves open.
        both: The interval to decide by.
    """

    statistical: Interval
    model: Interval
    both: Interval

    def times(self, factor: float) -> "Carried":
        """All three for an exact multiple.

        Args:
            factor: Not negative: a unit or a price.
        """
        return Carried(self.statistical.times(factor), self.model.times(factor), self.both.times(factor))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A positive number, its statistical and its model error.

    Attributes:
        value: Best estimate, in the unit of what it stands for.
        statistical: Log error from the measurement.
        model: Log error from the theory, such as the spread of κ where nothing is calibrated.
        level: Confidence of both.
    """

    value: float
    statistical: LogError
    model: LogError
    level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse what has no logarithm.

        Raises:
            DomainError: If the value is not positive or the level not between 0 and 1.
        """
        require_positive("an unresolved number has no estimate, only a bound", value=self.value)
        require_share("0.95 is usual", level=self.level)

    @property
    def error(self) -> LogError:
        """Both errors together; they are independent, so they add in quadrature."""
        return self.statistical.with_independent(self.model)

    @property
    def interval(self) -> Interval:
        """The interval to decide by: both errors."""
        return self._interval(self.error)

    def to_power(self, exponent: float, *, factor: float = 1.0) -> "Estimate":
        """The estimate of factor × value^exponent, exactly on the log scale.

        Args:
            exponent: 0.5 for a square root.
            factor: An exact positive number.

        Raises:
            DomainError: If the factor is not positive.
        """
        require_positive("a factor carries no sign here", factor=factor)
        return Estimate(
            value=factor * math.pow(self.value, exponent),
            statistical=self.statistical.to_power(exponent),
            model=self.model.to_power(exponent),
            level=self.level,
        )

    def through(self, function: Callable[[float], float]) -> Carried:
        """The intervals of a monotone function of the number: the function of the ends, in order.

        Args:
            function: Monotone, rising or falling; called with 0 and infinity where an end is open.
        """

        def carried(error: LogError) -> Interval:
            ends = self._interval(error)
            low, high = sorted((function(ends.low), function(ends.high)))
            return Interval(function(self.value), low, high, self.level)

        return Carried(carried(self.statistical), carried(self.model), carried(self.error))

    def _interval(self, error: LogError) -> Interval:
        # exp(709) is the last that float64 holds; what lies beyond is open for every purpose
        high = self.value * math.exp(error.up) if error.up < 700 else math.inf
        return Interval(self.value, self.value * math.exp(-error.down), high, self.level)


def estimate_from_interval(
    value: float, *, low: float | None, high: float | None, model_log_sd: float = 0.0, level: float = 0.95
) -> Estimate:
    """An estimate from a measured interval and the standard deviation of the model on the log scale.

    Args:
        value: Best estimate.
        low: Lower end of the measured interval; None or 0 where there is none.
        high: Upper end; None where there is none.
        model_log_sd: Standard deviation of log(truth / value) that no measurement of this kind removes; natural
            logarithm. Its part of the interval is the normal quantile of `level` times this.
        level: Confidence of the measured interval.

    Raises:
        DomainError: If the value is not positive or lies outside its interval.
    """
    require_positive("an unresolved number has no estimate, only a bound", value=value)
    require_not_negative("it is a standard deviation", model_log_sd=model_log_sd)
    require_share("0.95 is usual", level=level)
    if (low is not None and not low <= value) or (high is not None and not high >= value):
        raise DomainError(f"value must lie between low and high, got {value:g} with low={low} and high={high}")
    statistical = LogError(
        down=math.log(value / low) if low is not None and low > 0 else math.inf,
        up=math.log(high / value) if high is not None else math.inf,
    )
    model = NormalDist().inv_cdf(0.5 + level / 2) * model_log_sd
    return Estimate(value, statistical, LogError(model, model), level)
