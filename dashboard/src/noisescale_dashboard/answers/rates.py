"""What the REST API answers about a run's learning rate."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import Json, decoded


@dataclass(frozen=True, slots=True)
class RateAtStep:
    """What was known at a step; octaves are log₂(rate ÷ best rate), None while nothing was said."""

    step: int
    learning_rate: float | None = None
    verdict: str | None = None
    ratio: float | None = None
    octaves: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class RateVerdict:
    """Whether the rate is too low, right or too high; `factor` is best rate ÷ rate, None where nothing is said."""

    headline: str = ""
    reason: str = ""
    verdict: str | None = None
    step: int | None = None
    learning_rate: float | None = None
    octaves: float | None = None
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    probability: float | None = None
    points: tuple[RateAtStep, ...] = ()


def rate_verdict(data: Json) -> RateVerdict:
    """The verdict in `data`."""
    return decoded(RateVerdict, data)
