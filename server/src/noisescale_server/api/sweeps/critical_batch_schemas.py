"""Answers about critical batch sizes, version 1; see docs/rest.md."""

from typing import Literal
from uuid import UUID

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.batch_sweep.bootstrap import Bootstrap, NoBootstrap
from noisescale_server.analysis.sweeps.batch_sweep.regimes import LocalSlope
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import CurvePoint, TargetAnswer
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import LackOfFit
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import Residual, SweepFit
from noisescale_server.analysis.sweeps.fitting.turn import Turn
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.sweeps.sweeps import Goal


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
