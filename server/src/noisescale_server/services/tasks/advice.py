"""A recommendation for a task before a run's first step, from what its sweeps and earlier runs say together.

The setting that batch, learning rate and plan are changed from is that of the nearest tuned run of a sweep; where there
is none, that of the longest resolved run.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.defaults import filled
from noisescale_core.advice.evidence.evidence import Prior, Swept, SweptCurve
from noisescale_core.advice.limited import inside, round_batch, rounding
from noisescale_core.advice.limits.pace import pace_of
from noisescale_core.advice.limits.pricing import price
from noisescale_core.advice.limits.worth import Missing, worth_of
from noisescale_core.advice.parts.parts import Interval, LatestNoiseScale, RunSetting, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.errors import DomainError
from noisescale_server.analysis.calibration.levels import LEVEL
from noisescale_server.analysis.calibration.measurement import TypicalNoiseScale
from noisescale_server.services import defaults
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.services.tasks import schedule as task_schedule
from noisescale_server.services.tasks import tasks as task_evidence
from noisescale_server.services.tasks.schedule import TrainedWith, trained_with
from noisescale_server.services.tasks.tasks import TaskEvidence, TaskSweep
from noisescale_server.storage import tasks
from noisescale_server.storage.runs import runs


@dataclass(frozen=True, slots=True)
class ToTarget:
    """What a sweep predicts at a batch size, with the interval of its curve there.

    Attributes:
        sweep: That predicts it.
        batch_size: In examples.
        steps: Optimizer steps to its target.
    """

    sweep: TaskSweep
    batch_size: float
    steps: Interval


@dataclass(frozen=True, slots=True)
class TaskAdvice:
    """A recommendation with what it was made from.

    Attributes:
        evidence: What is known of the task.
        setting: That batch and learning rate are changed from; None where none is known.
        recommendation: The advice.
        to_target: Steps of the recommended batch and of those asked for.
        past: The longest earlier run that is resolved; None without one.
        asked: What was asked, with what the project says where neither anybody nor the earlier run has.
    """

    evidence: TaskEvidence
    setting: TrainedWith | None
    recommendation: Recommendation
    to_target: tuple[ToTarget, ...]
    past: RunSoFar | None
    asked: Question


async def advise(
    session: AsyncSession,
    whole_runs: WholeRuns,
    project: str,
    name: str,
    *,
    optimizer: str | None,
    asked: Question,
    has_schedule: bool = True,
) -> TaskAdvice:
    """The advice for the next run of a task, without a schedule and what else a list leaves out where none is asked.

    Raises:
        TaskNotFound: When the project has no task of this name.
        InvalidInput: If the interruptions of spot devices leave no time to work.
    """
    evidence = await task_evidence.of_task(session, project, name, optimizer=optimizer)
    run = await runs.get(session, evidence.runs[0].run_id) if evidence.runs else None
    past = None if run is None else run_history.so_far(run, await whole_runs.history(session, run))
    own_price = None if past is None else past.usd_per_device_hour
    asked = filled(asked, await defaults.of_id(session, evidence.task.project_id), own_price=own_price)
    setting = _setting(evidence, past)
    start = _start(evidence, past, setting, asked)
    needed = None if evidence.critical_batch else await tasks.updates_needed(session, evidence.task.task_id)
    known = _known(evidence, needed)
    try:
        found = recommend(start, known, asked, is_of_list=not has_schedule)
    except DomainError as error:
        raise refuse("interruptions_per_device_hour", str(error)) from error
    if has_schedule and setting is not None and past is not None and isinstance(known, Swept):
        found = task_schedule.replayed(found, past, setting, evidence, _rounding(start, asked, known))
    return TaskAdvice(
        evidence, setting, found, _to_target(evidence, [found.recommended_batch_size, *asked.batch_sizes]), past, asked
    )


def _known(evidence: TaskEvidence, updates_needed: int | None) -> Swept | Prior:
    """B_crit of the next run with what it rests on; or what is missing for one."""
    critical = evidence.critical_batch
    if critical is None:
        refused = next((one.row.missing for one in evidence.sweeps if one.row.missing), None)
        return Prior(evidence.kappa, evidence.optimizer, refused, updates_needed)
    scale = evidence.noise_scale
    return Swept(
        swept=Interval(critical.value, critical.low, critical.high, LEVEL),
        kappa=evidence.kappa,
        sweeps=tuple(one.row.critical_batch for one in evidence.sweeps if one.row.critical_batch is not None),
        num_runs=0 if scale is None else scale.num_runs,
        noise_scale=None if scale is None else _typical(scale),
        curve=next((curve_of(one) for one in evidence.sweeps if one.row.curve), None),
    )


def curve_of(sweep: TaskSweep) -> SweptCurve:
    """What a sweep predicts.

    Args:
        sweep: One that was fitted.
    """
    points = ((one["batch_size"], one["steps"], one["low"], one["high"]) for one in sweep.row.curve)
    return SweptCurve(sweep.sweep.metric, sweep.row.target, tuple(points))


def _setting(evidence: TaskEvidence, past: RunSoFar | None) -> TrainedWith | None:
    """The tuned setting nearest to B_crit, of the newest sweep that has one; else that of the earlier run."""
    tuned = next((one.row.tuned for one in evidence.sweeps if one.row.tuned), [])
    if tuned and evidence.critical_batch is not None:
        center = math.log(evidence.critical_batch.value)
        nearest = min(tuned, key=lambda one: abs(math.log(one["batch_size"]) - center))
        return TrainedWith(nearest["batch_size"], nearest["lr"], max(round(nearest["steps"]), 1), is_tuned=True)
    return None if past is None else trained_with(past)


def _start(evidence: TaskEvidence, past: RunSoFar | None, setting: TrainedWith | None, asked: Question) -> RunSetting:
    """The setting of the next run, with the step times and prices of the earlier one."""
    before = past or RunSetting(batch_size=None)
    # the earlier run's noise scales are no history of the next run; its step times are
    pace = [replace(one, value=None, low=None, high=None, learning_rate=None) for one in before.spent]
    return RunSetting(
        batch_size=None if setting is None else setting.batch_size,
        learning_rate=None if setting is None else setting.learning_rate,
        optimizer=evidence.optimizer,
        example=evidence.example,
        unit=evidence.unit,
        units_per_example=evidence.units_per_example,
        family=before.family or evidence.task.family,
        spent=pace,
        planned_steps=None if setting is None else setting.num_steps,
        num_devices=before.num_devices,
        usd_per_device_hour=asked.usd_per_device_hour or before.usd_per_device_hour,
        config=before.config,
    )


def _rounding(start: RunSetting, asked: Question, known: Swept) -> Callable[[float], int]:
    """From a wanted batch to one that can be run, as the recommended batch was rounded."""
    worth = worth_of(asked, start)
    priced = None if isinstance(worth, Missing) else price(known.critical(start), worth)
    if priced is None:
        return round_batch
    found = inside(priced, start, asked, pace_of(start, asked))
    return round_batch if found.batch is None else rounding(found, asked, priced)


def _to_target(evidence: TaskEvidence, batches: Sequence[float | None]) -> tuple[ToTarget, ...]:
    """Steps by the newest sweep that was fitted, inside the batch sizes of its curve."""
    sweep = next((one for one in evidence.sweeps if one.row.curve), None)
    if sweep is None:
        return ()
    curve = curve_of(sweep)
    steps = {size: curve.steps(size) for size in batches if size}
    return tuple(ToTarget(sweep, size, found) for size, found in steps.items() if found is not None)


def _typical(scale: TypicalNoiseScale) -> LatestNoiseScale:
    """The geometric mean of the earlier runs' averages, with what they differ by."""
    factor = math.exp(NormalDist().inv_cdf(0.5 + LEVEL / 2) * scale.log_sd)
    low, high = scale.value / factor, scale.value * factor
    return LatestNoiseScale("resolved", scale.value, low, high, LEVEL)
