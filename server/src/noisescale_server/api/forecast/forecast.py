"""GET /api/v1/runs/{run_id}/forecast and /api/v1/sweeps/{sweep_id}/forecast: laws, and where they lead."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.forecast.laws.shapes import Axis
from noisescale_server.api.forecast.schemas import ForecastAnswer, forecast_answer
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession, RunId
from noisescale_server.api.sweeps.schemas import MAX_TARGETS, Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services import forecast

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
