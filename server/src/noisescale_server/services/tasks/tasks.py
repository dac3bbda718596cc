"""The tasks of a project: how many runs and sweeps each has, and what they say of its critical batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.services.platform.errors import ProjectNotFound
from noisescale_server.services.recommendation import known_kappa
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.services.tasks.evidence import TaskSweep
from noisescale_server.storage import calibration as followed_calibration
from noisescale_server.storage import calibration as stored_calibration
from noisescale_server.storage import tasks
from noisescale_server.storage.calibration import WantedKappa
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.tasks import TaskRow

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
