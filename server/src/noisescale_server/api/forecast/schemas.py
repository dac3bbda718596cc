"""Answers about forecasts, version 1; see docs/rest.md."""

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.choice import Candidate, Verdict
from noisescale_server.analysis.forecast.laws.law import Law, LawPoint
from noisescale_server.analysis.forecast.laws.shapes import Axis, ShapeName
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.forecast import Forecast, Observed, Quantity, Warned


class LawAnswer(Answer):
    """The law: exponents with intervals, and which shapes the data speak for."""

    power: Estimate
    alpha: Estimate | None
    irreducible_loss: Estimate | None
    verdict: Verdict
    shape: ShapeName
    candidates: tuple[Candidate, ...]
    explanation: str
    num_observations: int
    num_clusters: int
    lowest: float
    highest: float


class ForecastPoint(Answer):
    """The law at one x: the curve's band, and the one in which a further window falls; in examples."""

    x: float
    value: float
    low: float | None
    high: float | None
    low_of_window: float | None
    high_of_window: float | None
    is_extrapolated: bool
    is_far: bool


class ForecastAnswer(Answer):
    """A forecast, or the reason why there is none."""

    quantity: Quantity
    axis: Axis
    unit: str
    units_per_example: float | None
    level: float
    observed: tuple[Observed, ...]
    num_unresolved: int
    num_cold: int
    law: LawAnswer | None
    reason: str | None
    curve: list[ForecastPoint]
    warnings: tuple[Warned, ...]


def forecast_answer(found: Forecast, *, unit: str, units_per_example: float | None, level: float) -> ForecastAnswer:
    """The forecast as JSON."""
    law = found.outcome if isinstance(found.outcome, Law) else None
    return ForecastAnswer(
        quantity=found.quantity,
        axis=found.axis,
        unit=unit,
        units_per_example=units_per_example,
        level=level,
        observed=found.observed,
        num_unresolved=found.num_unresolved,
        num_cold=found.num_cold,
        law=None if law is None else _law(law),
        reason=None if isinstance(found.outcome, Law) else found.outcome.explanation,
        curve=[_point(point) for point in found.curve],
        warnings=found.warnings,
    )


def _law(law: Law) -> LawAnswer:
    return LawAnswer(
        power=law.power,
        alpha=law.alpha,
        irreducible_loss=law.irreducible_loss,
        verdict=law.choice.verdict,
        shape=law.choice.shape,
        candidates=law.choice.candidates,
        explanation=law.choice.explanation,
        num_observations=law.num_observations,
        num_clusters=law.num_clusters,
        lowest=law.lowest,
        highest=law.highest,
    )


def _point(point: LawPoint) -> ForecastPoint:
    return ForecastPoint(
        x=point.x,
        value=point.curve.value,
        low=point.curve.low,
        high=point.curve.high,
        low_of_window=point.window.low,
        high_of_window=point.window.high,
        is_extrapolated=point.is_extrapolated,
        is_far=point.is_far,
    )
