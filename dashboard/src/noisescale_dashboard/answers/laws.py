"""What the REST API answers about laws: best learning rates, B_crit over targets, noise scale over the loss."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Json, decoded


@dataclass(frozen=True, slots=True)
class BestRate:
    """The best learning rate of a batch size; `low`, `high` are half way to the next rates tried, None at an edge."""

    batch_size: float
    lr: float
    low: float | None = None
    high: float | None = None
    steps: float | None = None
    num_rates: int = 1
    num_as_good: int = 1
    is_at_grid_edge: bool = False


@dataclass(frozen=True, slots=True)
class RateAtBatch:
    """A curve of learning rates at a batch size, with its band."""

    batch_size: float
    lr: Interval = UNKNOWN
    is_extrapolated: bool = False
    is_past_critical: bool = False


@dataclass(frozen=True, slots=True)
class RateCurve:
    """One curve through best learning rates; without points where the data do not speak for it."""

    name: str
    formula: str
    has_support: bool
    points: tuple[RateAtBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What theory claims, and whether it holds here; None where the data cannot tell."""

    text: str
    estimate: Interval = UNKNOWN
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class LearningRates:
    """The best learning rate at each batch size, and the curves through them."""

    rates: tuple[BestRate, ...]
    curves: tuple[RateCurve, ...] = ()
    can_tell: bool = False
    explanation: str = ""
    claims: tuple[Claim, ...] = ()
    warnings: tuple[str, ...] = ()
    unit: str = "examples"

    @property
    def supported(self) -> tuple[RateCurve, ...]:
        """The curves that the data speak for, the best first."""
        return tuple(curve for curve in self.curves if curve.has_support and curve.points)


def learning_rates(data: Json) -> LearningRates:
    """The learning rates in `data`."""
    return decoded(LearningRates, data)


@dataclass(frozen=True, slots=True)
class Observed:
    """What a law was fitted to, in examples: a window of a run, or a target of a sweep."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class LawPoint:
    """The law at one loss, with the band of the curve."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None
    is_extrapolated: bool = False


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law: its exponent, and what it says."""

    power: Interval = UNKNOWN
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """What to know of a forecast, as a sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where a law leads; without a curve, why."""

    curve: tuple[LawPoint, ...] = ()
    observed: tuple[Observed, ...] = ()
    num_unresolved: int = 0
    num_cold: int = 0
    law: Law = Law()
    reason: str | None = None
    warnings: tuple[Warned, ...] = ()

    @property
    def power(self) -> Interval:
        """Exponent of the loss in the law."""
        return self.law.power


def forecast(data: Json) -> Forecast:
    """The forecast in `data`."""
    return decoded(Forecast, data)
