"""What a sweep measured: B_crit at its hardest target that can be fitted, and the runs that tell its noise scale."""

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import CurvePoint, TargetAnswer, target_answer
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate, best_rates
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.services.sweeps.curves import goal_of, targets_of
from noisescale_server.services.sweeps.sweeps import Goal, SweepView

LEVEL = 0.95
MAX_REPEATS = 8
"""Runs of one setting that are read; more tell little more."""


@dataclass(frozen=True, slots=True)
class RunToTarget:
    """A stored run, up to the step at which its setting reached the target."""

    run_id: UUID
    to_step: int | None


@dataclass(frozen=True, slots=True)
class MeasuredSweep:
    """B_crit of a sweep, or what is known of it.

    Attributes:
        sweep_id: The sweep.
        metric: Name of the metric; None: the training loss.
        goal: Whether it falls or rises.
        unit: What the sweep's examples are called.
        target: That B_crit belongs to; None where the sweep has none.
        critical_batch: In examples; None where the fit was refused.
        bounds: What a refused fit still says; None if nothing.
        explanation: Why it was refused; None where it was not.
        findings: What speaks against the fit.
        runs: Repeats of the setting with the best learning rate nearest to B_crit, as far as they are stored.
        min_steps: S_min; None where the fit was refused.
        points: Steps at the best learning rate of each batch size.
        curve: Of the fit; empty where it was refused.
        fit: The whole of it; None where it was refused.
        best_rates: At each batch size, at the hardest target at which one is known on both sides.
    """

    sweep_id: UUID
    metric: str | None
    goal: Goal
    unit: str
    target: float | None
    critical_batch: Estimate | None
    bounds: Bounds | None
    explanation: str | None
    findings: tuple[str, ...]
    runs: tuple[RunToTarget, ...]
    min_steps: Estimate | None
    points: tuple[TargetPoint, ...]
    curve: tuple[CurvePoint, ...]
    fit: SweepFit | None = None
    best_rates: tuple[BestRate, ...] = ()


async def measure(session: AsyncSession, sweep_id: UUID) -> MeasuredSweep:
    """The sweep's B_crit.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    view = await sweeps.get(session, sweep_id)
    curves = await sweep_curves.of_sweep(session, view.row.sweep, view.runs)
    settings = sweep_curves.settings(view.runs, curves, goal_of(view.row.sweep))
    targets = targets_of(view.row.sweep, settings)
    # off the event loop: a fit takes tens of milliseconds
    return await asyncio.to_thread(_measured, view, settings, targets)


def _measured(view: SweepView, settings: Sequence[Setting], targets: Sequence[float]) -> MeasuredSweep:
    found = most_telling(target_answer(settings, target, level=LEVEL) for target in targets)
    outcome = None if found is None else found.outcome
    fit = outcome if isinstance(outcome, SweepFit) else None
    refusal = outcome if isinstance(outcome, Refusal) else None
    sweep = view.row.sweep
    return MeasuredSweep(
        sweep_id=sweep.id,
        metric=sweep.metric,
        goal=goal_of(sweep),
        unit=sweep.unit,
        target=None if found is None else found.target,
        critical_batch=None if fit is None else fit.critical_batch,
        bounds=None if refusal is None else refusal.critical_batch,
        explanation=_explanation(found, refusal),
        findings=() if fit is None else tuple(finding.value for finding in fit.lack_of_fit.findings),
        runs=() if found is None else _runs(view, found),
        min_steps=None if fit is None else fit.min_steps,
        points=() if found is None else found.points,
        curve=() if found is None else found.curve,
        fit=fit,
        best_rates=_best_rates(settings, targets),
    )


def _best_rates(settings: Sequence[Setting], targets: Sequence[float]) -> tuple[BestRate, ...]:
    """At the hardest target at which a best rate is known on both sides; empty where there is none."""
    for target in targets:
        found = best_rates(settings, target)
        if any(one.log_standard_error is not None for one in found):
            return found
    return ()


def most_telling(answers: Iterable[TargetAnswer]) -> TargetAnswer | None:
    """The hardest target that is fitted; where none is, the hardest that bounds B_crit, else the hardest.

    Args:
        answers: The hardest first; those after the first fit are not asked for.
    """
    refused: list[TargetAnswer] = []
    for found in answers:
        if isinstance(found.outcome, SweepFit):
            return found
        refused.append(found)
    bounded = (one for one in refused if isinstance(one.outcome, Refusal) and one.outcome.critical_batch is not None)
    return next(bounded, refused[0] if refused else None)


def _explanation(found: TargetAnswer | None, refusal: Refusal | None) -> str | None:
    if found is None:
        return "The sweep has no target, and its runs did not improve: let them go on, or name a target."
    return None if refusal is None else refusal.explanation


def _runs(view: SweepView, found: TargetAnswer) -> tuple[RunToTarget, ...]:
    """Stored repeats at the best learning rate of the batch size nearest to B_crit, or to the middle of the sweep."""
    if not found.points:
        return ()
    stored = {(run.batch_size, run.lr) for run in view.runs if run.is_stored and run.status != "infeasible"}
    centre = _centre(found)
    known = [point for point in found.points if (point.batch_size, point.lr) in stored]
    if not known:
        return ()
    nearest = min(known, key=lambda point: abs(math.log(point.batch_size) - centre))
    chosen = [
        run.run_id
        for run in view.runs
        if run.is_stored and (run.batch_size, run.lr) == (nearest.batch_size, nearest.lr) and run.status == "complete"
    ]
    return tuple(RunToTarget(run_id, last_step(nearest)) for run_id in chosen[:MAX_REPEATS])


def _centre(found: TargetAnswer) -> float:
    if isinstance(found.outcome, SweepFit):
        return math.log(found.outcome.critical_batch.value)
    return math.fsum(math.log(point.batch_size) for point in found.points) / len(found.points)


def last_step(point: TargetPoint) -> int | None:
    """The step that reached the target: steps are counted from 0, so of S steps taken the last is S - 1."""
    steps = point.average.steps.steps
    return None if steps is None else max(math.ceil(steps) - 1, 0)
