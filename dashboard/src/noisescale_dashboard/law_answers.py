"""What the REST API answers about laws: best learning rates, B_crit over targets, noise scale over the loss."""

from dataclasses import dataclass

from noisescale_dashboard.answers import UNKNOWN, Interval, Json, interval, picked


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
class RatePoint:
    """A curve of learning rates at a batch size, with its band."""

    batch_size: float
    lr: Interval
    is_extrapolated: bool = False
    is_past_critical: bool = False


@dataclass(frozen=True, slots=True)
class RateCurve:
    """One curve through best learning rates; without points where the data do not speak for it."""

    name: str
    formula: str
    has_support: bool
    points: tuple[RatePoint, ...] = ()


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
    nested = {
        "rates": tuple(picked(BestRate, row) for row in data["rates"]),
        "curves": tuple(_rate_curve(row) for row in data.get("curves") or ()),
        "claims": tuple(
            picked(Claim, {**row, "estimate": interval(row.get("estimate"))}) for row in data.get("claims") or ()
        ),
        "warnings": tuple(data.get("warnings") or ()),
    }
    return picked(LearningRates, {**data, **nested})


def _rate_curve(data: Json) -> RateCurve:
    points = tuple(picked(RatePoint, {**row, "lr": interval(row.get("lr"))}) for row in data.get("points") or ())
    return picked(RateCurve, {**data, "points": points})


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
class Forecast:
    """Where a law leads; without a curve, why."""

    curve: tuple[LawPoint, ...] = ()
    observed: tuple[Observed, ...] = ()
    num_unresolved: int = 0
    num_cold: int = 0
    power: Interval = UNKNOWN
    explanation: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def forecast(data: Json) -> Forecast:
    """The forecast in `data`."""
    law = data.get("law") or {}
    return Forecast(
        curve=tuple(picked(LawPoint, row) for row in data.get("curve") or ()),
        observed=tuple(picked(Observed, row) for row in data.get("observed") or ()),
        num_unresolved=data.get("num_unresolved") or 0,
        num_cold=data.get("num_cold") or 0,
        power=interval(law.get("power")),
        explanation=law.get("explanation"),
        reason=data.get("reason"),
        warnings=tuple(row["text"] for row in data.get("warnings") or ()),
    )
