"""Answers about tasks, and advice before a run's first step; see docs/rest.md."""

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import ConfigDict

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.parts.parts import Interval, LatestNoiseScale
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.recommendation.schemas import AS_JSON
from noisescale_server.api.sweeps.followed import FollowedRunAnswer


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
