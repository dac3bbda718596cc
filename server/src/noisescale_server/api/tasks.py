"""/api/v1/projects/{project}/tasks: what is known of each task, and advice before a run's first step."""

from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import ConfigDict, Field

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.parts.parts import Interval, LatestNoiseScale
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import calibration
from noisescale_core.advice.trainer_flags import as_flags
from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession, Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.recommendation.schemas import AS_JSON, RecommendationQuery, as_said
from noisescale_server.api.sweeps.schemas import FollowedRunAnswer, followed_answer
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.tasks import advice as task_advice
from noisescale_server.services.tasks import tasks
from noisescale_server.services.tasks.advice import TaskAdvice, ToTarget
from noisescale_server.services.tasks.tasks import TaskSummary, TaskSweep
from noisescale_server.storage.sweeps import called

# Answers about tasks, and advice before a run's first step; see docs/rest.md.


class KnownCriticalBatch(Answer):
    """B_crit in examples; without a value the bounds that a refused fit leaves, null where open."""

    value: float | None
    low: float | None
    high: float | None
    level: float


class TaskSweepAnswer(Answer):
    """A sweep of the task and what it says."""

    sweep_id: UUID
    name: str
    optimizer: str
    metric: str | None
    target: float | None
    critical_batch: KnownCriticalBatch | None
    missing: str | None


class TaskKappa(Answer):
    """κ of the next run for one kind of optimizer; the fields of `Calibration`."""

    optimizer: str
    state: Literal["uncalibrated", "calibrated"]
    kappa: Interval
    kappa_log10_sd: float
    measurements: int
    text: str


class TaskRunAverage(Answer):
    """The average noise scale of the resolved run that was active last."""

    run_id: UUID
    noise_scale: LatestNoiseScale


class TaskAnswer(Answer):
    """A task."""

    name: str
    unit: str | None
    family: str | None
    num_runs: int
    num_sweeps: int
    num_branches: int
    kappas: list[TaskKappa]
    sweeps: list[TaskSweepAnswer]
    followed: list[FollowedRunAnswer]
    latest_run_average: TaskRunAverage | None


class TaskList(Answer):
    """The tasks of a project, by name."""

    tasks: list[TaskAnswer]


class SettingAnswer(Answer):
    """The earlier run's setting that batch and learning rate are changed from."""

    batch_size: float
    lr: float | None
    steps: int
    is_tuned: bool


class ToTargetAnswer(Answer):
    """Steps that a sweep predicts to its target; the interval is of its curve."""

    sweep_id: UUID
    metric: str | None
    target: float | None
    batch_size: float
    steps: Interval
    examples: Interval


class EarlierRun(Answer):
    """A run that the noise scale comes from."""

    run_id: UUID
    run_average: KnownCriticalBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecommendationAnswer(Recommendation):
    """The advice before step 0: fields mean what they do for a run, and are null where only a run tells."""

    __pydantic_config__: ClassVar[ConfigDict] = AS_JSON

    project: str
    task: str
    optimizer: str | None
    changed_from: SettingAnswer | None
    to_target: list[ToTargetAnswer]
    sweeps: list[TaskSweepAnswer]
    runs: list[EarlierRun]


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
