"""GET /api/v1/comparison: noise scales against critical batches over tasks, one's own and published ones."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.comparison.comparison import Statistics
from noisescale_server.analysis.comparison.ratio import Ratio
from noisescale_server.analysis.comparison.task_order import TaskOrder
from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.analysis.recommendation.definitions import Definition
from noisescale_server.analysis.series.averages import Averages
from noisescale_server.analysis.sweeps import published as published_sweeps
from noisescale_server.analysis.sweeps.published import PublishedSweep
from noisescale_server.api.platform.columns import ComparedRunsAnswer, JsonColumns, columns_of
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession, Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.series import own_columns, window_columns
from noisescale_server.api.sweeps.critical_batch import fit_answer
from noisescale_server.services.comparison import comparison, reference_values
from noisescale_server.services.comparison import runs as comparison_runs
from noisescale_server.services.comparison.comparison import Average, ComparedTask, Comparison, Comparisons, Source
from noisescale_server.services.comparison.reference_values import (
    Form,
    PublishedComparison,
    PublishedNumber,
    PublishedStatistics,
)
from noisescale_server.services.comparison.runs import AlignedRun, ComparedRuns, Progress
from noisescale_server.services.sweeps.sweeps import Goal

# Answers about comparisons over tasks, version 1; see docs/rest.md.


class ComparedTaskAnswer(Answer):
    """One task and optimizer; noise scale and critical batch in examples."""

    project: str
    task: str
    family: str | None
    optimizer: str | None
    unit: str
    units_per_example: float
    noise_scale: Averages | None
    run_ids: tuple[UUID, ...]
    source: Source
    sweep_id: UUID
    metric: str | None
    goal: Goal
    target: float | None
    definition: Definition
    critical_batch: Estimate | None
    critical_batch_bounds: Bounds | None
    explanation: str | None
    findings: tuple[str, ...]
    kappa: Estimate | None
    left_out: str | None


class PublishedTaskAnswer(Answer):
    """One published task, both numbers in its unit."""

    task: str
    unit: str
    form: Form
    noise_scale: PublishedNumber
    critical_batch: PublishedNumber
    noise_scale_at_start: PublishedNumber | None
    critical_batch_at_start: PublishedNumber | None
    source: str
    source_address: str
    evidence: str
    note: str | None


class PublishedComparisonAnswer(Answer):
    """What is published of the same comparison."""

    tasks: list[PublishedTaskAnswer]
    statistics: tuple[PublishedStatistics, ...]
    orders: tuple[TaskOrder, ...]
    article_r_squared: float


class PublishedCriticalBatch(Answer):
    """The critical batch of a published sweep, in its examples; its noise scale is not published."""

    suite: str
    workload: str
    version: str
    critical_batch: Estimate


class ComparisonAnswer(Answer):
    """The comparison."""

    average: Average
    tasks: list[ComparedTaskAnswer]
    statistics: Statistics | None
    statistics_missing: str | None
    orders: tuple[TaskOrder, ...]
    published: PublishedComparisonAnswer
    published_sweeps: list[PublishedCriticalBatch]


def comparison_answer(
    found: Comparison, published: PublishedComparison, sweeps: Sequence[PublishedSweep]
) -> ComparisonAnswer:
    """The comparison as JSON."""
    return ComparisonAnswer(
        average=found.average,
        tasks=[_task(one) for one in found.tasks],
        statistics=found.statistics,
        statistics_missing=found.statistics_missing,
        orders=found.orders,
        published=_published(published),
        published_sweeps=[
            PublishedCriticalBatch(
                suite=one.workload.suite,
                workload=one.workload.name,
                version=one.workload.version,
                critical_batch=fit.critical_batch,
            )
            for one in sweeps
            if (fit := fit_answer(one.outcome)) is not None
        ],
    )


def _task(one: ComparedTask) -> ComparedTaskAnswer:
    return ComparedTaskAnswer(
        project=one.project,
        task=one.task,
        family=one.family,
        optimizer=one.optimizer,
        unit=one.unit,
        units_per_example=one.units_per_example,
        noise_scale=one.noise_scale,
        run_ids=one.run_ids,
        source=one.source,
        sweep_id=one.sweep.sweep_id,
        metric=one.sweep.metric,
        goal=one.sweep.goal,
        target=one.sweep.target,
        definition=Definition.HALF_EFFICIENCY,
        critical_batch=one.sweep.critical_batch,
        critical_batch_bounds=one.sweep.bounds,
        explanation=one.sweep.explanation,
        findings=one.sweep.findings,
        kappa=one.kappa,
        left_out=one.left_out,
    )


def _published(found: PublishedComparison) -> PublishedComparisonAnswer:
    tasks = [
        PublishedTaskAnswer(
            task=one.task,
            unit=one.unit,
            form=one.form,
            noise_scale=one.noise_scale,
            critical_batch=one.critical_batch,
            noise_scale_at_start=one.noise_scale_at_start,
            critical_batch_at_start=one.critical_batch_at_start,
            source=one.source,
            source_address=one.source_address,
            evidence=one.evidence,
            note=one.note,
        )
        for one in found.tasks
    ]
    return PublishedComparisonAnswer(
        tasks=tasks, statistics=found.statistics, orders=found.orders, article_r_squared=found.article_r_squared
    )


router = APIRouter(tags=["comparison"])

MAX_TASKS = 200
MAX_RUNS = 200


class ComparisonQuery(BaseModel):
    """Which tasks, by which average."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    task: Annotated[list[Text], Field(max_length=MAX_TASKS, description="names; default: all")] = []
    run: Annotated[
        list[UUID], Field(max_length=MAX_RUNS, description="runs whose noise scale is taken, with their tasks")
    ] = []
    average: Annotated[Average, Field(description="which average statistics and order are of")] = "run_average"


@router.get("/comparison")
async def get_comparison(
    request: Request, query: Annotated[ComparisonQuery, Query()], session: ReadSession
) -> ComparisonAnswer:
    """Each task's noise scale and critical batch, how well one predicts the other, and the same as published."""
    known: Comparisons = request.app.state.comparisons
    found = await comparison.compare(
        session, known, project=query.project, tasks=query.task or None, run_ids=query.run, average=query.average
    )
    published = reference_values.published(request.app.state.reference_values)
    # the first call of a process fits them all
    sweeps = await asyncio.to_thread(published_sweeps.published_sweeps)
    return comparison_answer(found, published, sweeps)


# GET /api/v1/comparison/runs: runs side by side along one axis, and the ratio of their noise scales.


MAX_COMPARED = 20
SHOWN = (
    "step", "examples", "wall_time", "value", "low", "high", "state", "reason",
    "loss", "loss_min", "loss_max", "global_batch", "lr",
)  # fmt: skip
"""Columns of a run's series that a comparison shows."""


class RunsQuery(BaseModel):
    """Which runs, along what."""

    model_config = ConfigDict(extra="forbid")

    run: Annotated[list[UUID], Field(min_length=1, max_length=MAX_COMPARED, description="ratios are to the first")]
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
