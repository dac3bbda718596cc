"""GET /api/v1/runs/{run_id}/forecast and /api/v1/sweeps/{sweep_id}/forecast: laws, and where they lead."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.choice import Candidate, Verdict
from noisescale_server.analysis.forecast.laws.law import Law, LawPoint
from noisescale_server.analysis.forecast.laws.shapes import Axis, ShapeName
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession, RunId
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.schemas import MAX_TARGETS, Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services import forecast
from noisescale_server.services.forecast import Forecast, Observed, Quantity, Warned

# Answers about forecasts, version 1; see docs/rest.md.


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


router = APIRouter(tags=["forecast"])

Level = Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the bands")]
NumPoints = Annotated[int, Field(ge=2, le=500, description="of the curve")]
To = Annotated[float | None, Field(allow_inf_nan=False, description="loss, steps or examples to forecast to")]


class RunForecastQuery(BaseModel):
    """Over what, how far, how sure."""

    model_config = ConfigDict(extra="forbid")

    axis: Axis = Axis.LOSS
    to: To = None
    points: NumPoints = 60
    level: Level = 0.95


class SweepForecastQuery(BaseModel):
    """Over which targets, how far, how sure."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[list[Value], Field(max_length=MAX_TARGETS, description="default: those of the sweep")] = []
    to: To = None
    points: NumPoints = 60
    level: Level = 0.95


@router.get("/runs/{run_id}/forecast")
async def get_run_forecast(
    run_id: RunId, query: Annotated[RunForecastQuery, Query()], session: ReadSession, whole_runs: KnownWholeRuns
) -> ForecastAnswer:
    """The run's noise scale over the loss, steps or examples: the law with its exponent, the curve with bands."""
    run, found = await forecast.of_run(
        session, whole_runs, run_id, axis=query.axis, to=query.to, num_points=query.points, level=query.level
    )
    return forecast_answer(found, unit=run.unit, units_per_example=run.units_per_example, level=query.level)


@router.get("/sweeps/{sweep_id}/forecast")
async def get_sweep_forecast(
    sweep_id: SweepId, query: Annotated[SweepForecastQuery, Query()], session: ReadSession
) -> ForecastAnswer:
    """The sweep's critical batch over the targets: the law with its exponent, the curve with bands."""
    row, found = await forecast.of_sweep(
        session, sweep_id, targets=query.target, to=query.to, num_points=query.points, level=query.level
    )
    return forecast_answer(found, unit=row.sweep.unit, units_per_example=None, level=query.level)
