"""/api/v1/projects/{project}/tasks: what is known of each task, and advice before a run's first step."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import Field

from noisescale_core.advice.parts.parts import Interval, LatestNoiseScale
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import calibration
from noisescale_core.advice.trainer_flags import as_flags
from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession, Text
from noisescale_server.api.recommendation.query import RecommendationQuery
from noisescale_server.api.recommendation.schemas import as_said
from noisescale_server.api.sweeps.followed import followed_answer
from noisescale_server.api.tasks.schemas import (
    EarlierRun,
    KnownCriticalBatch,
    SettingAnswer,
    TaskAnswer,
    TaskKappa,
    TaskList,
    TaskRecommendationAnswer,
    TaskRunAverage,
    TaskSweepAnswer,
    ToTargetAnswer,
)
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.tasks import advice as task_advice
from noisescale_server.services.tasks import tasks
from noisescale_server.services.tasks.advice import TaskAdvice, ToTarget
from noisescale_server.services.tasks.evidence import TaskSweep
from noisescale_server.services.tasks.tasks import TaskSummary
from noisescale_server.storage.sweeps import called

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/tasks", tags=["tasks"])

ProjectName = Annotated[Text, Path(description="name of the project")]
TaskName = Annotated[Text, Path(description="name of the task")]

LEVEL = 0.95


class TaskRecommendationQuery(RecommendationQuery):
    """What a reader asks before a run's first step: as of a run, and the optimizer."""

    optimizer: Annotated[Text | None, Field(description="class name; default: the one used last")] = None


@router.get("")
async def list_tasks(project: ProjectName, session: ReadSession, whole_runs: KnownWholeRuns) -> TaskList:
    """The tasks of a project by name, at most 200, with their sweeps, κ and newest run average."""
    found = await tasks.of_project(session, whole_runs, project)
    return TaskList(tasks=[task_answer(one) for one in found])


@router.get("/{task:path}/recommendation", response_model=TaskRecommendationAnswer)
async def get_task_recommendation(
    project: ProjectName,
    task: TaskName,
    query: Annotated[TaskRecommendationQuery, Query()],
    session: ReadSession,
    whole_runs: KnownWholeRuns,
) -> TaskRecommendationAnswer | PlainTextResponse:
    """Which batch size the next run of a task should start with, from its earlier runs and sweeps."""
    if query.to_step is not None:
        raise refuse("to_step", "is a step of a run, and this run has not begun: leave it out", query.to_step)
    asked = query.question()
    advice = await task_advice.advise(session, whole_runs, project, task, optimizer=query.optimizer, asked=asked)
    if query.format == "json":
        return recommendation_answer(project, advice)
    return PlainTextResponse(_flags(advice, query, advice.asked))


def recommendation_answer(project: str, advice: TaskAdvice) -> TaskRecommendationAnswer:
    """The advice as JSON; see docs/rest.md."""
    evidence, setting = advice.evidence, advice.setting
    return TaskRecommendationAnswer(
        project=project,
        task=evidence.task.name,
        optimizer=evidence.optimizer,
        changed_from=None
        if setting is None
        else SettingAnswer(
            batch_size=setting.batch_size,
            lr=setting.learning_rate,
            steps=setting.num_steps,
            is_tuned=setting.is_tuned,
        ),
        to_target=[_to_target(one) for one in advice.to_target],
        sweeps=[_sweep(one, evidence.task.name) for one in evidence.sweeps],
        runs=[_run(one.run_id, one.run_average) for one in evidence.runs],
        **as_said(advice.recommendation),
    )


def task_answer(found: TaskSummary) -> TaskAnswer:
    """A task as JSON."""
    row, latest = found.row, found.latest
    return TaskAnswer(
        name=row.name,
        unit=row.unit,
        family=row.family,
        num_runs=row.num_runs,
        num_sweeps=row.num_sweeps,
        num_branches=row.num_branches,
        kappas=[_kappa(kind, kappa) for kind, kappa in found.kappas.items()],
        sweeps=[_sweep(one, row.name) for one in found.sweeps],
        followed=[followed_answer(one.row, one.sweep) for one in found.followed],
        latest_run_average=None
        if latest is None
        else TaskRunAverage(run_id=latest.run_id, noise_scale=LatestNoiseScale.of(latest.noise_scale, None)),
    )


def _flags(advice: TaskAdvice, query: TaskRecommendationQuery, asked: Question) -> str:
    """The schedule as a trainer takes it.

    Raises:
        InvalidInput: Where there is no schedule, with what is missing.
    """
    found, rate = advice.recommendation.schedule, advice.recommendation.exchange_rate
    if found is None or rate is None or query.format == "json":
        missing = advice.recommendation.schedule_missing
        raise refuse("format", f"there is no schedule to write: {missing}", query.format)
    return as_flags(
        found,
        query.format,
        asked,
        batch_now=found.stages[0].batch_size,
        units_per_example=advice.evidence.units_per_example,
        num_devices=None,
        examples_per_step=rate.examples_per_step,
    )


def _sweep(one: TaskSweep, task: str) -> TaskSweepAnswer:
    return TaskSweepAnswer(
        sweep_id=one.sweep.id,
        name=called(one.sweep, task),
        optimizer=one.row.optimizer,
        metric=one.sweep.metric,
        target=one.row.target,
        critical_batch=_known(one.critical_batch),
        missing=one.row.missing,
    )


def _known(found: Estimate | Bounds | None) -> KnownCriticalBatch | None:
    if found is None:
        return None
    value = found.value if isinstance(found, Estimate) else None
    return KnownCriticalBatch(value=value, low=found.low, high=found.high, level=found.level)


def _run(run_id: UUID, average: Estimate) -> EarlierRun:
    known = KnownCriticalBatch(value=average.value, low=average.low, high=average.high, level=average.level)
    return EarlierRun(run_id=run_id, run_average=known)


def _kappa(kind: str, kappa: Kappa) -> TaskKappa:
    return TaskKappa(optimizer=kind, **asdict(calibration(kappa, LEVEL)))


def _to_target(one: ToTarget) -> ToTargetAnswer:
    size = one.batch_size
    return ToTargetAnswer(
        sweep_id=one.sweep.sweep.id,
        metric=one.sweep.sweep.metric,
        target=one.sweep.row.target,
        batch_size=size,
        steps=one.steps,
        examples=Interval(size * one.steps.value, size * one.steps.low, size * one.steps.high),
    )
