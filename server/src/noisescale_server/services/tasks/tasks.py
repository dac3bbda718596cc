"""The tasks of a project: how many runs and sweeps each has, and what they say of its critical batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.analysis.calibration.calibration import UNCALIBRATED, Kappa
from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.measurement import TypicalNoiseScale, typical_noise_scale
from noisescale_server.analysis.calibration.task import NextCriticalBatch, next_critical_batch
from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.analysis.series.averages import Window, averages
from noisescale_server.services.calibration import calibration
from noisescale_server.services.platform.errors import ProjectNotFound, TaskNotFound
from noisescale_server.services.recommendation import known_kappa
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.services.sweeps import noise_scale_behind
from noisescale_server.storage import calibration as followed_calibration
from noisescale_server.storage import calibration as stored_calibration
from noisescale_server.storage import comparison, tasks
from noisescale_server.storage.calibration import WantedKappa
from noisescale_server.storage.platform.tables import Calibration, Sweep
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.tasks import TaskRow

# What a project knows of a task before its next run: its sweeps, its runs' noise scales, and κ.

MAX_RUNS = 4
"""Longest resolved runs of the task that are averaged; each is a read of 40 windows."""


@dataclass(frozen=True, slots=True)
class TaskSweep:
    """A sweep of the task.

    Attributes:
        row: What it says.
        sweep: Its description.
    """

    row: Calibration
    sweep: Sweep

    @property
    def critical_batch(self) -> Estimate | Bounds | None:
        """B_crit in examples, or what a refused fit leaves; None where it says nothing."""
        row = self.row
        if row.critical_batch is not None:
            return Estimate(row.critical_batch, row.critical_batch_low, row.critical_batch_high, calibration.LEVEL)
        if row.critical_batch_low is None and row.critical_batch_high is None:
            return None
        return Bounds(row.critical_batch_low, row.critical_batch_high, calibration.LEVEL)


@dataclass(frozen=True, slots=True)
class TaskRun:
    """An earlier run of the task with its resolved windows, oldest first."""

    run_id: UUID
    windows: Sequence[Window]
    run_average: Estimate


@dataclass(frozen=True, slots=True)
class TaskEvidence:
    """What is known of a task and an optimizer.

    Attributes:
        task: The task.
        optimizer: As asked, or the one used last; None where nothing says.
        unit: What people count in.
        example: What is sampled independently.
        units_per_example: How many units make an example.
        sweeps: Sweeps over batch sizes with this kind of optimizer, newest first.
        runs: Longest resolved runs with this kind of optimizer.
        noise_scale: Of these runs together.
        kappa: B_crit / noise scale for the next run.
        critical_batch: B_crit of the next run; None while nothing tells.
    """

    task: TaskRow
    optimizer: str | None
    unit: str
    example: str
    units_per_example: float
    sweeps: Sequence[TaskSweep]
    runs: Sequence[TaskRun]
    noise_scale: TypicalNoiseScale | None
    kappa: Kappa
    critical_batch: NextCriticalBatch | None


async def of_task(session: AsyncSession, project: str, name: str, *, optimizer: str | None) -> TaskEvidence:
    """What is known of a task, for one kind of optimizer.

    Raises:
        TaskNotFound: When the project has no task of this name.
    """
    task = await tasks.get(session, project, name)
    if task is None:
        raise TaskNotFound(project, name)
    stored = await stored_calibration.of_task(session, task.task_id)
    known = [TaskSweep(row, sweep) for row, sweep in stored if sweep.kind == "sweep"]
    optimizer = optimizer or await _usual_optimizer(session, task, known)
    kind = optimizer_kind(optimizer)
    sweeps = [one for one in known if one.row.optimizer == kind]
    runs = await _runs(session, task, kind)
    scale = typical_noise_scale([run.run_average for run in runs])
    (rows,) = await stored_calibration.kappas(session, [WantedKappa(task.project_id, kind, task.task_id, task.family)])
    kappa = known_kappa.of_rows(rows, task.task_id)
    others = known_kappa.of_rows([row for row in rows if row.task_id != task.task_id], task.task_id)
    measured = [found for one in sweeps if (found := one.critical_batch) is not None]
    unit, example, units_per_example = await tasks.shown_in(session, task.task_id) or (
        task.unit or "examples", "example", 1.0,
    )  # fmt: skip
    return TaskEvidence(
        task=task,
        optimizer=optimizer,
        unit=unit,
        example=example,
        units_per_example=units_per_example,
        sweeps=sweeps,
        runs=runs,
        noise_scale=scale,
        kappa=kappa if rows else UNCALIBRATED,
        critical_batch=next_critical_batch(measured, scale, kappa=kappa, kappa_of_others=others),
    )


async def _usual_optimizer(session: AsyncSession, task: TaskRow, known: Sequence[TaskSweep]) -> str | None:
    used = await tasks.optimizers(session, task.task_id)
    of_sweeps = [one.sweep.optimizer for one in known if one.sweep.optimizer]
    return next(iter([*used, *of_sweeps]), None)


async def _runs(session: AsyncSession, task: TaskRow, kind: str) -> list[TaskRun]:
    """The longest resolved runs with this kind of optimizer."""
    by_optimizer = await comparison.resolved_runs(session, [task.task_id], at_most=MAX_RUNS)
    ids = [run_id for (_, name), known in by_optimizer.items() if optimizer_kind(name) == kind for run_id in known]
    measured = await comparison.measured_runs(session, ids)
    ordered = sorted(measured.values(), key=lambda run: max(one.last_step for one in run.coverage), reverse=True)
    found = []
    for run in ordered[:MAX_RUNS]:
        resolved = await noise_scale_behind.resolved_windows(session, run, None)
        average = averages(resolved)
        if average is not None:
            found.append(TaskRun(run.run_id, resolved, average.run_average))
    return found


MAX_TASKS = 200
MAX_FOLLOWED = 50
"""Runs of one task that are shown; κ is from all of them."""


@dataclass(frozen=True, slots=True)
class RunAverage:
    """The average of the task's resolved run that was active last.

    Attributes:
        run_id: The run.
        noise_scale: Its average over steps, in examples.
    """

    run_id: UUID
    noise_scale: NoiseScaleEstimate


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task of a project.

    Attributes:
        row: Name, unit, family and counts.
        kappas: κ of the next run by kind of optimizer, as far as its own sweeps, branches and followed runs tell.
        sweeps: Sweeps over batch sizes, newest first.
        followed: Runs whose batch changed that are held against a sweep, newest first.
        latest: Of its resolved run that was active last; None where there is none.
    """

    row: TaskRow
    kappas: dict[str, Kappa]
    sweeps: Sequence[TaskSweep]
    followed: Sequence[TaskSweep]
    latest: RunAverage | None


async def of_project(session: AsyncSession, whole_runs: WholeRuns, project: str) -> list[TaskSummary]:
    """The first 200 tasks by name.

    Raises:
        ProjectNotFound: When no project has this name.
    """
    if not await tasks.project_exists(session, project):
        raise ProjectNotFound(project)
    rows = await tasks.of_project(session, project, limit=MAX_TASKS)
    newest = await tasks.newest_resolved_runs(session, [row.task_id for row in rows])
    return [await _summary(session, whole_runs, row, newest.get(row.task_id)) for row in rows]


async def _summary(session: AsyncSession, whole_runs: WholeRuns, row: TaskRow, newest: UUID | None) -> TaskSummary:
    stored = await stored_calibration.of_task(session, row.task_id)
    held = await followed_calibration.newest(session, MAX_FOLLOWED, task_id=row.task_id)
    kinds = sorted({one.optimizer for one, _ in [*stored, *held] if one.error is not None})
    kappas = {kind: await _kappa(session, row, kind) for kind in kinds}
    sweeps = [TaskSweep(one, sweep) for one, sweep in stored if sweep.kind == "sweep"]
    followed = [TaskSweep(one, sweep) for one, sweep in held]
    return TaskSummary(
        row, kappas, sweeps, followed, None if newest is None else await _latest(session, whole_runs, newest)
    )


async def _kappa(session: AsyncSession, row: TaskRow, kind: str) -> Kappa:
    (found,) = await stored_calibration.kappas(session, [WantedKappa(row.project_id, kind, row.task_id, row.family)])
    return known_kappa.of_rows(found, row.task_id)


async def _latest(session: AsyncSession, whole_runs: WholeRuns, run_id: UUID) -> RunAverage | None:
    run = await runs.get(session, run_id)
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id, SIMPLE))
    if run is None or not live.intervals:
        return None
    return RunAverage(run_id, (await whole_runs.of_run(session, run, live)).run_average)
