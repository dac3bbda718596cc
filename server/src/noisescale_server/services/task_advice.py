"""A recommendation for a task before a run's first step: as if a run stood at step 0 with an earlier run's setting.

B_crit is what the task's sweeps and runs say together. The setting that batch, learning rate and plan are changed from
is that of the nearest tuned run of a sweep; where there is none, that of the longest resolved run.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.kappa import Kappa
from noisescale_core.advice.limited import inside, round_batch, rounding
from noisescale_core.advice.pace import pace_of
from noisescale_core.advice.parts import RunSoFar
from noisescale_core.advice.pricing import price
from noisescale_core.advice.recommendation import calibration, recommend
from noisescale_core.advice.worth import Missing, worth_of
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_server.analysis.calibration_levels import LEVEL
from noisescale_server.services import run_history, task_evidence, task_schedule, task_wording
from noisescale_server.services.errors import refuse
from noisescale_server.services.run_advice import Question
from noisescale_server.services.task_evidence import TaskEvidence, TaskSweep
from noisescale_server.services.task_schedule import Setting
from noisescale_server.services.whole_run import WholeRuns
from noisescale_server.services.windows import NOTHING_MEASURED
from noisescale_server.storage import runs, tasks


@dataclass(frozen=True, slots=True)
class ToTarget:
    """What a sweep foretells at a batch size, with the interval of its curve there.

    Attributes:
        sweep: That foretells it.
        batch_size: In examples.
        steps: Optimizer steps to its target.
        steps_low: Lower end.
        steps_high: Upper end.
    """

    sweep: TaskSweep
    batch_size: float
    steps: float
    steps_low: float
    steps_high: float


@dataclass(frozen=True, slots=True)
class TaskAdvice:
    """A recommendation with what it was made from.

    Attributes:
        evidence: What is known of the task.
        setting: That batch and learning rate are changed from; None where none is known.
        is_enough: Whether a batch can be named.
        recommendation: The advice; its `decision` says nothing before a run's first step.
        noise_scale: Of earlier runs together.
        to_target: Steps of the recommended batch and of those asked for.
        past: The longest earlier run that is resolved; None without one.
    """

    evidence: TaskEvidence
    setting: Setting | None
    is_enough: bool
    recommendation: Recommendation
    noise_scale: NoiseScaleEstimate
    to_target: tuple[ToTarget, ...]
    past: RunSoFar | None


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
    past = None if run is None else run_history.so_far(run, await whole_runs.history(session, run), is_now=True)
    setting = _setting(evidence, past)
    standing = _standing(evidence, past, setting, asked)
    try:
        found = recommend(
            standing, asked.wish, _kappa(evidence), asked.given, asked.batches, is_of_list=not has_schedule
        )
    except ValueError as error:
        raise refuse("interruptions_per_device_hour", str(error)) from error
    is_enough = found.recommended_batch_size is not None
    to_target = _to_target(evidence, [found.recommended_batch_size, *asked.batches])
    needed = None if is_enough else await tasks.updates_needed(session, evidence.task.task_id)
    said = _in_words_of_a_task(evidence, found, to_target, needed)
    if has_schedule and setting is not None and past is not None:
        said = task_schedule.replayed(said, past, setting, evidence, _rounding(standing, asked, _kappa(evidence)))
    return TaskAdvice(evidence, setting, is_enough, said, noise_scale_of(evidence), to_target, past)


def _setting(evidence: TaskEvidence, past: RunSoFar | None) -> Setting | None:
    """The tuned setting nearest to B_crit, of the newest sweep that has one; else that of the earlier run."""
    tuned = next((one.row.tuned for one in evidence.sweeps if one.row.tuned), [])
    if tuned and evidence.critical_batch is not None:
        center = math.log(evidence.critical_batch.value)
        nearest = min(tuned, key=lambda one: abs(math.log(one["batch_size"]) - center))
        return Setting(nearest["batch_size"], nearest["lr"], max(round(nearest["steps"]), 1), is_tuned=True)
    if past is None or past.batch_size is None:
        return None
    rates = [one.learning_rate for one in past.spent if one.learning_rate]
    return Setting(past.batch_size, max(rates, default=None), max(past.steps_done, 1), is_tuned=False)


def _standing(evidence: TaskEvidence, past: RunSoFar | None, setting: Setting | None, asked: Question) -> RunSoFar:
    """A run at step 0 with the setting, and with the step times of the earlier run."""
    critical = evidence.critical_batch
    blank = RunSoFar(NOTHING_MEASURED, None) if past is None else past
    # the earlier run's noise scales are no history of the next run; its step times are
    pace = [replace(one, value=None, low=None, high=None, learning_rate=None) for one in blank.spent]
    return replace(
        blank,
        noise_scale=NOTHING_MEASURED if critical is None else _exact(critical.value),
        batch_size=None if setting is None else setting.batch_size,
        learning_rate=None if setting is None else setting.learning_rate,
        optimizer=evidence.optimizer,
        example=evidence.example,
        unit=evidence.unit,
        units_per_example=evidence.units_per_example,
        family=blank.family or evidence.task.family,
        spent=pace,
        usd_spent=None,
        reason=None,
        flags=0,
        steps_done=0,
        planned_steps=None if setting is None else setting.num_steps,
        usd_per_device_hour=asked.usd_per_device_hour or blank.usd_per_device_hour,
    )


def _kappa(evidence: TaskEvidence) -> Kappa:
    """B_crit itself takes the noise scale's place: a κ of 1 carries its whole error."""
    critical = evidence.critical_batch
    if critical is None:
        return evidence.kappa
    sd = math.log(critical.high / critical.low) / (2 * NormalDist().inv_cdf(0.5 + LEVEL / 2))
    fitted = sum(one.row.critical_batch is not None for one in evidence.sweeps)
    return Kappa(0.0, sd, max(evidence.kappa.measurements, fitted), evidence.kappa.said)


def _rounding(standing: RunSoFar, asked: Question, kappa: Kappa) -> Callable[[float], int]:
    """From a wanted batch to one that can be run, as the recommended batch was rounded."""
    worth = worth_of(asked.wish, standing, spot_price_share=asked.given.spot_price_share)
    priced = None if isinstance(worth, Missing) else price(standing.noise_scale, asked.wish, kappa, worth)
    if priced is None:
        return round_batch
    found = inside(priced, standing, asked.given, pace_of(standing, asked.wish, asked.given))
    return round_batch if found.batch is None else rounding(found, asked.given, priced)


def _in_words_of_a_task(
    evidence: TaskEvidence, found: Recommendation, to_target: Sequence[ToTarget], needed: int | None
) -> Recommendation:
    """The advice without what only a run that has begun can be told."""
    words = task_wording.words(evidence, found, needed)
    steps = next(iter(to_target), None)
    effect = found.effect if found.recommended_batch_size is None else None
    return replace(
        found,
        headline=words.headline,
        reason=words.reason,
        effect=effect
        if steps is None
        else task_wording.effect(steps.sweep, steps.steps, steps.steps_low, steps.steps_high),
        next_step=words.next_step,
        current_batch_size=None,
        statistical_interval=None,
        calibration=calibration(evidence.kappa, LEVEL),
        example_efficiency=None,
        step_efficiency=None,
        predicted=None,
        waste=None,
        counterfactual=None,
        next_steps=(),
    )


def _to_target(evidence: TaskEvidence, batches: Sequence[float | None]) -> tuple[ToTarget, ...]:
    """Steps by the newest sweep that was fitted, inside the batch sizes of its curve."""
    sweep = next((one for one in evidence.sweeps if one.row.curve), None)
    if sweep is None:
        return ()
    curve = sweep.row.curve
    inside = [size for size in batches if size and curve[0]["batch_size"] <= size <= curve[-1]["batch_size"]]
    return tuple(
        ToTarget(sweep, size, *(task_schedule.on_curve(curve, size, name) for name in ("steps", "low", "high")))
        for size in dict.fromkeys(inside)
    )


def noise_scale_of(evidence: TaskEvidence) -> NoiseScaleEstimate:
    """The geometric mean of the earlier runs' averages, with what they differ by."""
    scale = evidence.noise_scale
    if scale is None:
        return NOTHING_MEASURED
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * scale.log_sd
    return replace(_exact(scale.value), low=scale.value * math.exp(-reach), high=scale.value * math.exp(reach))


def _exact(value: float) -> NoiseScaleEstimate:
    return NoiseScaleEstimate(
        state=State.RESOLVED,
        value=value,
        low=value,
        high=value,
        level=LEVEL,
        z=None,
        reason=None,
        updates_needed=None,
        num_updates=0,
        num_blocks=0,
        trace_cov=None,
        trace_cov_se=None,
        grad_sq_norm=None,
        grad_sq_norm_se=None,
    )
