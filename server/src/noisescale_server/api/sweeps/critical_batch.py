"""GET /api/v1/sweeps/{sweep_id}/critical-batch and /critical-batches: S_min, E_min and B_crit, or why not."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.batch_sweep.bootstrap import Bootstrap, NoBootstrap
from noisescale_server.analysis.sweeps.batch_sweep.regimes import LocalSlope
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import CurvePoint, TargetAnswer
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import LackOfFit
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import Residual, SweepFit
from noisescale_server.analysis.sweeps.fitting.turn import Turn
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint
from noisescale_server.api.platform.deps import ReadSession, TwentyIds, read_ids
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.schemas import MAX_TARGETS, Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.sweeps import critical_batch
from noisescale_server.services.sweeps.critical_batch import SweptTargets
from noisescale_server.services.sweeps.sweeps import Goal

# Answers about critical batch sizes, version 1; see docs/rest.md.


class FitAnswer(Answer):
    """S = S_min (1 + B_crit / B) with intervals; `turn` where examples rise again at small batches."""

    min_steps: Estimate
    min_examples: Estimate
    critical_batch: Estimate
    scatter: float
    noise_level: Literal["runs", "batch_sizes"]
    rms: float
    residuals: tuple[Residual, ...]
    turn: Turn | None
    lack_of_fit: LackOfFit


class StepsPoint(Answer):
    """Steps to the target at one batch size and its best learning rate."""

    batch_size: float
    lr: float
    num_learning_rates: int
    num_runs: int
    is_at_grid_edge: bool
    outcome: Literal["reached", "not_reached"]
    steps: float | None
    low: float
    high: float | None
    examples: float | None


class TargetFit(Answer):
    """What a sweep says about one target: a fit, or a refusal."""

    target: float
    points: list[StepsPoint]
    fit: FitAnswer | None
    refusal: Refusal | None
    regimes: tuple[LocalSlope, ...]
    curve: tuple[CurvePoint, ...]
    bootstrap: Bootstrap | NoBootstrap | None


class CriticalBatchAnswer(Answer):
    """Critical batch sizes of a sweep, one a target."""

    sweep_id: UUID
    metric: str | None
    goal: Goal
    unit: str
    level: float
    targets: list[TargetFit]


class SeveralCriticalBatches(Answer):
    """Of several sweeps, each at its hardest target."""

    sweeps: list[CriticalBatchAnswer]


def fit_answer(outcome: SweepFit | Refusal) -> FitAnswer | None:
    """The fit as JSON, or null."""
    if isinstance(outcome, Refusal):
        return None
    return FitAnswer(
        min_steps=outcome.min_steps,
        min_examples=outcome.min_examples,
        critical_batch=outcome.critical_batch,
        scatter=outcome.scatter,
        noise_level=outcome.noise_level.value,
        rms=outcome.rms,
        residuals=outcome.residuals,
        turn=outcome.turn,
        lack_of_fit=outcome.lack_of_fit,
    )


def target_fit(found: TargetAnswer) -> TargetFit:
    """One target as JSON."""
    return TargetFit(
        target=found.target,
        points=[_point(point) for point in found.points],
        fit=fit_answer(found.outcome),
        refusal=found.outcome if isinstance(found.outcome, Refusal) else None,
        regimes=found.slopes,
        curve=found.curve,
        bootstrap=found.bootstrap,
    )


def _point(point: TargetPoint) -> StepsPoint:
    steps = point.average.steps
    return StepsPoint(
        batch_size=point.batch_size,
        lr=point.lr,
        num_learning_rates=point.num_learning_rates,
        num_runs=point.average.num_seeds,
        is_at_grid_edge=point.is_at_grid_edge,
        outcome="not_reached" if steps.steps is None else "reached",
        steps=steps.steps,
        low=steps.low,
        high=None if steps.steps is None else steps.high,
        examples=None if steps.steps is None else steps.steps * point.batch_size,
    )


router = APIRouter(tags=["sweeps"])

MOST_AT_ONCE = 20
"""Sweeps of one question: a fit that is not kept yet takes its time."""
Level = Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the intervals")]


class CriticalBatchQuery(BaseModel):
    """Which targets, and how sure."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[list[Value], Field(max_length=MAX_TARGETS, description="default: those of the sweep")] = []
    level: Level = 0.95
    bootstrap: Annotated[bool, Field(description="also draw the seeds again; takes some 0.1 s a target")] = False


class CriticalBatchesQuery(BaseModel):
    """Of which sweeps, and how sure."""

    model_config = ConfigDict(extra="forbid")

    ids: TwentyIds
    level: Level = 0.95


@router.get("/sweeps/critical-batches")
async def get_critical_batches(
    query: Annotated[CriticalBatchesQuery, Query()], session: ReadSession
) -> SeveralCriticalBatches:
    """Of several sweeps the hardest target alone, for a list of them; ids without a sweep or target are left out."""
    found = await critical_batch.of_sweeps(session, read_ids(query.ids, MOST_AT_ONCE), level=query.level)
    return SeveralCriticalBatches(sweeps=[_answer(one, query.level) for one in found])


@router.get("/sweeps/{sweep_id}/critical-batch")
async def get_critical_batch(
    sweep_id: SweepId, query: Annotated[CriticalBatchQuery, Query()], session: ReadSession
) -> CriticalBatchAnswer:
    """For each target: steps at each batch size, the fit with intervals or the refusal, regimes and the curve."""
    found = await critical_batch.of_sweep(
        session, sweep_id, targets=query.target, level=query.level, with_bootstrap=query.bootstrap
    )
    return _answer(found, query.level)


def _answer(found: SweptTargets, level: float) -> CriticalBatchAnswer:
    sweep = found.row.sweep
    return CriticalBatchAnswer(
        sweep_id=sweep.id,
        metric=sweep.metric,
        goal="max" if sweep.goal == "max" else "min",
        unit=sweep.unit,
        level=level,
        targets=[target_fit(one) for one in found.targets],
    )
