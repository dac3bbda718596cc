"""GET /api/v1/comparison/runs: runs side by side along one axis, and the ratio of their noise scales."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.comparison.ratio import Ratio
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.api.platform.columns import ComparedRunsAnswer, JsonColumns, columns_of
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession
from noisescale_server.api.series import own_columns, window_columns
from noisescale_server.services.comparison import runs as comparison_runs
from noisescale_server.services.comparison.runs import AlignedRun, ComparedRuns, Progress

router = APIRouter(tags=["comparison"])

MAX_RUNS = 20
SHOWN = (
    "step", "examples", "wall_time", "value", "low", "high", "state", "reason",
    "loss", "loss_min", "loss_max", "global_batch", "lr",
)  # fmt: skip
"""Columns of a run's series that a comparison shows."""


class RunsQuery(BaseModel):
    """Which runs, along what."""

    model_config = ConfigDict(extra="forbid")

    run: Annotated[list[UUID], Field(min_length=1, max_length=MAX_RUNS, description="ratios are to the first")]
    x: Progress = "step"
    points: Annotated[int, Field(ge=1, le=500)] = 200


@router.get("/comparison/runs", response_class=JsonColumns, responses=columns_of(ComparedRunsAnswer))
async def get_compared_runs(
    query: Annotated[RunsQuery, Query()], session: ReadSession, whole_runs: KnownWholeRuns
) -> JsonColumns:
    """Each run's noise scale, loss, batch and efficiency over the same axis; see docs/rest.md."""
    found = await comparison_runs.compare_runs(session, whole_runs, query.run, x=query.x, max_points=query.points)
    return JsonColumns(_answer(found))


def _answer(found: ComparedRuns) -> dict[str, Any]:
    return {
        "x": found.x,
        "runs": [_run(run) for run in found.runs],
        "missing": [str(run_id) for run_id in found.missing],
        "ratios": [
            _ratio(run, ratio, to=found.runs[0], sign=-1 if found.x == "loss" else 1)
            for run, ratio in zip(found.runs[1:], found.ratios, strict=True)
        ],
    }


def _run(run: AlignedRun) -> dict[str, Any]:
    columns = own_columns(run.found.points) | window_columns(run.found.points, run.found.estimates)
    shares = list(zip(*run.example_efficiency, strict=True)) or [(), (), ()]
    names = ("example_efficiency", "example_efficiency_low", "example_efficiency_high")
    return {
        "run_id": str(run.found.run.id),
        "unit": run.found.run.unit,
        "units_per_example": run.found.run.units_per_example,
        "window_steps": run.found.how.window_steps,
        "points": {"x": run.x} | {name: columns[name] for name in SHOWN} | dict(zip(names, shares, strict=True)),
    }


def _ratio(run: AlignedRun, ratio: Ratio, *, to: AlignedRun, sign: int) -> dict[str, Any]:
    # losses stand as negative numbers, which rise as progress does
    return {
        "run_id": str(run.found.run.id),
        "to_run_id": str(to.found.run.id),
        "x": [sign * point.x for point in ratio.points],
        "value": [point.ratio.value for point in ratio.points],
        "low": [point.ratio.low for point in ratio.points],
        "high": [point.ratio.high for point in ratio.points],
        "is_resolved": [point.is_resolved for point in ratio.points],
        "mean": _estimate(ratio.mean),
    }


def _estimate(one: Estimate | None) -> dict[str, float | None] | None:
    return None if one is None else {"value": one.value, "low": one.low, "high": one.high, "level": one.level}
