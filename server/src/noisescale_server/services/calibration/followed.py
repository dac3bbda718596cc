"""Runs whose batch changed while they trained, held against a sweep of their task: each measures κ by its outcome.

The sweep is the newest of the task that was fitted, of the same kind of optimizer and the same config but for what runs
of one sweep differ in and how the batch changes.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid5

import numpy as np
from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import State
from noisescale_server.analysis.calibration.followed import (
    TOO_FAST,
    FollowedKappa,
    LeastSteps,
    Stretch,
    followed_kappa,
)
from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.measurement import log_sd
from noisescale_server.analysis.series.averages import averages
from noisescale_server.analysis.series.steady_batch import SAME_BATCH
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve, steps_to_target
from noisescale_server.services.series import averages as task_averages
from noisescale_server.services.series.windows import Windows
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import noise_scale_behind, steady_batch
from noisescale_server.services.sweeps.gathered import MOST_RUNS, rest_of
from noisescale_server.services.sweeps.measured import MeasuredSweep
from noisescale_server.storage import calibration as calibrations
from noisescale_server.storage import calibration as storage
from noisescale_server.storage import comparison, sweeps
from noisescale_server.storage.calibration import FOLLOWED, HELD_AGAINST, IMPORTED, STEPS, NewCalibration
from noisescale_server.storage.comparison import MeasuredRun
from noisescale_server.storage.platform.tables import Run, Sweep
from noisescale_server.storage.runs import runs
from noisescale_server.storage.sweeps import NewSweep

MAX_RUNS = 48
"""Held against one sweep, the newest: each is a read of its metric and of 40 windows."""

HOW_THE_BATCH_CHANGES: Final = frozenset(
    {"follow", "following", "batch_schedule", "batch_size_schedule", "batch_ramp", "rampup_batch_size"}
)
"""Keys of a config in which a run whose batch changed differs from those of the sweep, beside what these differ in."""

RIGHT_RATE = 2.0
"""Factor about the best learning rate of the sweep within which a run's rate at the target is right: outside of it a
run is slower for its rate, and κ would read too large."""

LATEST_START = 0.05
"""Share of the steps to the target that may be missing at a run's beginning."""

OF_FOLLOWED = UUID("9f0c2a0b-6a5a-4d0e-8e3e-2f7f6a1c9b54")

KEPT = 500
_kept: LRUCache[Hashable, "Course"] = LRUCache(KEPT)


@dataclass(frozen=True, slots=True)
class Course:
    """A run up to a step.

    Attributes:
        stretches: Neighbouring steps with batch and noise scale, in order; empty where no noise scale is resolved.
        learning_rate: At the end; None where none was logged.
        noise_scale: Mean over its steps, in examples; None where none is resolved.
        noise_scale_error: Standard deviation of its logarithm.
    """

    stretches: tuple[Stretch, ...]
    learning_rate: float | None
    noise_scale: float | None
    noise_scale_error: float

    @property
    def mean_batch(self) -> float:
        """Over its steps, in examples."""
        num_steps = math.fsum(one.num_steps for one in self.stretches)
        return math.fsum(one.num_steps * one.batch_size for one in self.stretches) / num_steps


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run says.

    Attributes:
        kappa: None where it says nothing.
        missing: Why; None where it says something.
        steps: To the target; None where it is not known to have reached it.
        noise_scale: Mean over these, in examples.
    """

    kappa: FollowedKappa | None
    missing: str | None
    steps: float | None = None
    noise_scale: float | None = None


def row_of(run_id: UUID) -> UUID:
    """The id of the run's calibration: one a run, whatever sweep it is held against."""
    return uuid5(OF_FOLLOWED, str(run_id))


async def sweep_for(session: AsyncSession, run_id: UUID) -> UUID | None:
    """The sweep that a run is held against: None unless it has finished, changed its batch, and there is one."""
    run = await runs.get(session, run_id)
    if run is None or run.finish_status != "finished" or run.archived or not run.latest_global_batch:
        return None
    if await calibrations.sweeps_with(session, run_id) or not await _changed(session, [run]):
        return None
    return await _sweep_of(session, run.task_id, optimizer_kind(run.optimizer), _likeness([run.config]))


async def refresh(session: AsyncSession, sweep: Sweep, measured: MeasuredSweep, optimizer: str) -> None:
    """Measure anew what runs say that are held against the sweep, and forget those that no longer are.

    Args:
        session: Where to read and write.
        sweep: Over batch sizes, locked, with its calibration as it is now.
        measured: What it says.
        optimizer: Its kind.
    """
    held = await storage.runs_against(session, sweep.id)
    found = await _runs_for(session, sweep, measured, optimizer)
    await storage.forget(session, [row_id for run_id, row_id in held.items() if run_id not in found])
    outcomes = {run_id: await _outcome(session, run, measured) for run_id, run in found.items()}
    num_sharing = sum(one.kappa is not None and one.kappa.shared_error > 0 for one in outcomes.values())
    for run_id, one in outcomes.items():
        await _keep(session, sweep, measured, found[run_id], one, num_sharing)


async def _runs_for(session: AsyncSession, sweep: Sweep, measured: MeasuredSweep, optimizer: str) -> dict[UUID, Run]:
    """Finished runs that are alike, whose batch changed, and that no sweep has; none unless it is the newest sweep."""
    if measured.fit is None or measured.target is None or not measured.fit.min_steps.is_bounded:
        return {}
    likeness = _likeness(await storage.configs_of(session, sweep.id))
    if await _sweep_of(session, sweep.task_id, optimizer, likeness) != sweep.id:
        return {}
    alike = [
        run
        for run in await sweeps.unswept_runs(session, sweep.task_id, MOST_RUNS)
        if optimizer_kind(run.optimizer) == optimizer and _likeness([run.config]) == likeness
    ]
    changed = await _changed(session, alike)
    return {run.id: run for run in [run for run in alike if run.id in changed][:MAX_RUNS]}


async def _changed(session: AsyncSession, found: Sequence[Run]) -> Collection[UUID]:
    newest = {run.id: run.latest_global_batch for run in found if run.latest_global_batch}
    return {run_id for run_id, batch in (await steady_batch.of_runs(session, newest)).items() if batch is None}


async def _sweep_of(
    session: AsyncSession, task_id: UUID, optimizer: str, likeness: Mapping[str, Any] | None
) -> UUID | None:
    if likeness is None:
        return None
    for sweep_id in await storage.fitted_sweeps(session, task_id, optimizer):
        if _likeness(await storage.configs_of(session, sweep_id)) == likeness:
            return sweep_id
    return None


def _likeness(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What all of these configs say of the training; None where they differ or say nothing."""
    said = [
        {name: value for name, value in rest_of(config).items() if name.lower() not in HOW_THE_BATCH_CHANGES}
        for config in configs
    ]
    return said[0] if said and said[0] and all(one == said[0] for one in said) else None


async def _outcome(session: AsyncSession, run: Run, measured: MeasuredSweep) -> Outcome:
    fit, target = measured.fit, measured.target
    assert fit is not None, "others hold nothing against them"
    assert target is not None, "nor those"
    logged = await sweep_curves.of_stored_run(session, run.id, measured.metric)
    if not logged:
        return Outcome(None, f"It has logged no {measured.metric or 'loss'}, by which the sweep is measured.")
    at, values = tuple(float(step) for step, _ in logged), tuple(value for _, value in logged)
    curve = MetricCurve(at, values, Direction(measured.goal))
    steps = steps_to_target(curve, target)
    if steps.steps is None:
        return Outcome(None, f"It did not reach the sweep's target, {target:g}.")
    stored = (await comparison.measured_runs(session, [run.id])).get(run.id)
    course = None if stored is None else await _course(session, stored, math.ceil(steps.high) - 1)
    if course is None or not course.stretches:
        return Outcome(None, "None of its windows up to the target has a resolved noise scale.", steps.steps)
    missing = _why_not(course, run, fit, measured, steps.steps)
    if missing is not None:
        return Outcome(None, missing, steps.steps, course.noise_scale)
    kappa = followed_kappa(course.stretches, steps, LeastSteps.of(fit), noise_scale_error=course.noise_scale_error)
    return Outcome(kappa, None if kappa else TOO_FAST, steps.steps, course.noise_scale)


def _why_not(course: Course, run: Run, fit: SweepFit, measured: MeasuredSweep, steps: float) -> str | None:
    """Why a run that reached the target says nothing of κ all the same; None where it does."""
    if (run.first_step or 0) > LATEST_START * steps:
        return f"It begins at step {run.first_step:,}: what it trained before is not known."
    below = math.fsum(one.num_steps for one in course.stretches if one.batch_size * SAME_BATCH < fit.least_batch)
    if below > LATEST_START * steps:
        return (
            f"It trained at batches below {fit.least_batch:.4g}, where the sweep takes more examples again: there "
            "steps make less progress than the theory says."
        )
    rate, best = course.learning_rate, best_rate(measured, course.mean_batch)
    if rate is None or best is None:
        return "It has logged no learning rate, so that nobody knows whether it was the right one."
    if not best / RIGHT_RATE <= rate <= best * RIGHT_RATE:
        return (
            f"Its learning rate at the target, {rate:.3g}, is more than {RIGHT_RATE:g} × away from the {best:.3g} that "
            "the sweep found best near its batch: it took its steps for that, too."
        )
    return None


def best_rate(measured: MeasuredSweep, batch_size: float) -> float | None:
    """The best learning rate of a sweep at a batch size, between its batch sizes on log scales, beyond them the last.

    Args:
        measured: The sweep.
        batch_size: In examples.
    """
    reached = [point for point in measured.points if point.average.steps.steps is not None]
    if not reached:
        return None
    sizes, rates = zip(*((math.log(point.batch_size), math.log(point.lr)) for point in reached), strict=True)
    return math.exp(float(np.interp(math.log(batch_size), sizes, rates)))


async def _course(session: AsyncSession, run: MeasuredRun, to_step: int) -> Course:
    # stored rows never change: the same steps give the same windows
    key = (run.run_id, run.created_at, run.coverage, to_step)
    known = _kept.get(key)
    if known is None:
        _kept[key] = known = course_of(await noise_scale_behind.all_windows(session, run, to_step))
    return known


def course_of(found: Windows) -> Course:
    """Batch and noise scale of each stretch; where none is resolved that of the last before it, at first the first.

    Args:
        found: Windows of the run up to the target.
    """
    points = found.points
    rate = next((one for one in reversed(points.lr_last) if one), None)
    whole = averages(task_averages.resolved_windows(points, found.estimates))
    average = None if whole is None else whole.run_average
    if average is None or not average.low:
        return Course((), rate, None, 0.0)
    counts = zip(points.sum_global_batch, points.num_global_batch, strict=True)
    batches = _carried([total / count if count else None for total, count in counts])
    scales = _carried([one.value if one.state is State.RESOLVED and one.low else None for one in found.estimates])
    # steps are counted from 0; those that a run did not log count with the next that it did
    befores = (-1, *points.step_last[:-1])
    rows = zip(befores, points.step_last, batches, scales, strict=True)
    stretches = tuple(Stretch(float(end - before), batch, scale) for before, end, batch, scale in rows)
    return Course(stretches, rate, average.value, log_sd(average))


def _carried(values: Sequence[float | None]) -> list[float]:
    """Each value, or the last known before it; before the first known that one."""
    last = next(value for value in values if value is not None)
    found = []
    for value in values:
        last = last if value is None else value
        found.append(last)
    return found


async def _keep(
    session: AsyncSession, sweep: Sweep, measured: MeasuredSweep, run: Run, found: Outcome, num_sharing: int
) -> None:
    row_id = row_of(run.id)
    project, task = await sweeps.names_of(session, run)
    details = {HELD_AGAINST: str(sweep.id), STEPS: found.steps}
    new = NewSweep(
        id=row_id,
        project=project,
        task=task,
        name=run.name,
        kind=FOLLOWED,
        run_id=run.id,
        metric=sweep.metric,
        goal=sweep.goal,
        targets=[],
        unit=sweep.unit,
        optimizer=run.optimizer,
        details=details,
    )
    await sweeps.create_if_absent(session, new)
    row = await sweeps.get_row(session, row_id)
    if row is None or IMPORTED in row.sweep.details:
        return  # it counts here already, as another server has measured it
    row.sweep.details, row.sweep.metric, row.sweep.goal, row.sweep.task_id = (
        details, sweep.metric, sweep.goal, run.task_id,
    )  # fmt: skip
    await session.flush()
    kappa = found.kappa
    observed = None if kappa is None else kappa.observation(num_sharing)
    await calibrations.keep(
        session,
        NewCalibration(
            sweep_id=row_id,
            project_id=run.project_id,
            task_id=run.task_id,
            optimizer=optimizer_kind(run.optimizer),
            family=await calibrations.family_of_task(session, run.task_id),
            target=measured.target,
            min_steps=measured.min_steps.value if measured.min_steps else None,
            noise_scale=found.noise_scale,
            log_kappa_low=observed.low if observed and math.isfinite(observed.low) else None,
            log_kappa_high=observed.high if observed else None,
            error=observed.error if observed else None,
            num_runs=1,
            missing=found.missing,
        ),
    )
