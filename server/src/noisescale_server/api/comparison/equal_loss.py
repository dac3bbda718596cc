"""GET /api/v1/comparison/model-size and /temperature: what a task's runs say at equal loss."""

import math
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.comparison.equal_loss import NotKnown
from noisescale_server.analysis.comparison.model_size import SizeEffect
from noisescale_server.analysis.comparison.temperature_effect import TemperatureEffect
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.api.platform.deps import ReadSession, Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.comparison import equal_loss
from noisescale_server.services.comparison.equal_loss import ComparedRun, KnownWindows
from noisescale_server.storage.comparison import SizedTask

router = APIRouter(tags=["comparison"])

Level = Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the intervals")]


class TaskQuery(BaseModel):
    """Which task, how sure."""

    model_config = ConfigDict(extra="forbid")

    project: Text
    task: Text
    level: Level = 0.95


SizeKey = Annotated[Text, Field(description="key of a number in the runs' config")]


class SizeQuery(TaskQuery):
    """Which task, and where its runs say how large their models are."""

    size_key: SizeKey = "num_parameters"


class SizedTasksQuery(BaseModel):
    """Where runs say how large their models are."""

    model_config = ConfigDict(extra="forbid")

    size_key: SizeKey = "num_parameters"


class SizedTasksAnswer(Answer):
    """Tasks with runs of two sizes or more, those with most sizes first."""

    size_key: str
    tasks: list[SizedTask]


class RunAtLosses(Answer):
    """A run's resolved windows, as columns; noise scales in examples."""

    run_id: UUID
    name: str
    size: float | None
    loss: list[float]
    noise_scale: list[float]
    learning_rate: list[float | None]
    batch_size: list[float | None]
    is_warm: list[bool]


class SizeAnswer(Answer):
    """The effect of the model's size at equal loss, or the reason why it is not known."""

    size_key: str
    level: float
    runs: list[RunAtLosses]
    effect: SizeEffect | None
    has_common_losses: bool | None
    reason: str | None


class TemperatureAnswer(Answer):
    """The exponents of learning rate and batch at equal loss, or the reason why they are not known."""

    level: float
    runs: list[RunAtLosses]
    learning_rate: Estimate | None
    batch: Estimate | None
    loss_power: Estimate | None
    num_runs: int
    num_windows: int
    reason: str | None


@router.get("/comparison/sized-tasks")
async def get_sized_tasks(query: Annotated[SizedTasksQuery, Query()], session: ReadSession) -> SizedTasksAnswer:
    """The tasks whose runs have models of several sizes."""
    found = await equal_loss.sized_tasks(session, size_key=query.size_key)
    return SizedTasksAnswer(size_key=query.size_key, tasks=found)


@router.get("/comparison/model-size")
async def get_model_size(request: Request, query: Annotated[SizeQuery, Query()], session: ReadSession) -> SizeAnswer:
    """Whether larger models of a task have a larger noise scale at equal loss."""
    known: KnownWindows = request.app.state.known_windows
    runs, found = await equal_loss.of_sizes(
        session, known, project=query.project, task=query.task, size_key=query.size_key, level=query.level
    )
    effect = found if isinstance(found, SizeEffect) else None
    return SizeAnswer(
        size_key=query.size_key,
        level=query.level,
        runs=[_run(run) for run in runs],
        effect=effect,
        has_common_losses=None if effect is None else effect.has_common_losses,
        reason=found.explanation if isinstance(found, NotKnown) else None,
    )


@router.get("/comparison/temperature")
async def get_temperature(
    request: Request, query: Annotated[TaskQuery, Query()], session: ReadSession
) -> TemperatureAnswer:
    """How a task's noise scale moves with the learning rate and with the batch at equal loss."""
    known: KnownWindows = request.app.state.known_windows
    runs, found = await equal_loss.of_temperature(
        session, known, project=query.project, task=query.task, level=query.level
    )
    effect = found if isinstance(found, TemperatureEffect) else None
    return TemperatureAnswer(
        level=query.level,
        runs=[_run(run) for run in runs],
        learning_rate=None if effect is None else effect.learning_rate,
        batch=None if effect is None else effect.batch,
        loss_power=None if effect is None else effect.loss_power,
        num_runs=0 if effect is None else effect.num_runs,
        num_windows=0 if effect is None else effect.num_windows,
        reason=found.explanation if isinstance(found, NotKnown) else None,
    )


def _run(run: ComparedRun) -> RunAtLosses:
    return RunAtLosses(
        run_id=run.run_id,
        name=run.name,
        size=run.size,
        loss=[window.loss for window in run.windows],
        noise_scale=[math.exp(window.log_value) for window in run.windows],
        learning_rate=[window.learning_rate for window in run.windows],
        batch_size=[window.batch_size for window in run.windows],
        is_warm=[window.is_warm for window in run.windows],
    )
