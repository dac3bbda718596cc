"""The critical batch that a planner's table is about: of a run, or of a task before its next run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.defaults import filled
from noisescale_core.advice.evidence.critical_belief import Critical, stated_critical
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.limits.bounds import data_size
from noisescale_core.advice.limits.pace import Pace, pace_of
from noisescale_core.advice.limits.pricing import price
from noisescale_core.advice.limits.worth import Missing, worth_of
from noisescale_core.advice.parts.parts import Interval, RunSoFar
from noisescale_core.advice.plan import growth, profile
from noisescale_core.advice.question import NOTHING_ASKED, Question
from noisescale_core.errors import DomainError
from noisescale_core.theory.intervals import Estimate, LogError, estimate_from_interval
from noisescale_core.theory.schedule import Stretch
from noisescale_core.theory.what_if import RestOfPlan
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.services import defaults
from noisescale_server.services.calibration.calibration import LEVEL
from noisescale_server.services.planner.asked import EXACT
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.recommendation import known_kappa, run_advice
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.services.sweeps import critical_batch
from noisescale_server.services.tasks import advice as task_advice
from noisescale_server.services.tasks.advice import TaskAdvice
from noisescale_server.services.tasks.tasks import TaskEvidence, TaskSweep
from noisescale_server.storage.sweeps import called as name_of

# Another target of a task's sweep to plan for: B_crit and steps are then those of the sweep's fit at it.


@dataclass(frozen=True, slots=True)
class SweepTargets:
    """The targets of the task's newest sweep.

    Attributes:
        metric: Of the sweep; None where it was not named.
        values: Its targets, as the sweep names them.
    """

    metric: str | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AtTarget:
    """What the sweep says at one target.

    Attributes:
        critical_batch: B_crit in examples; all of its error is the fit's.
        plan: Steps at the batch where the curve is known best.
        plan_error: Log error of these steps.
        target: In words.
        said: Where it comes from, as a sentence.
    """

    critical_batch: Estimate
    plan: RestOfPlan
    plan_error: LogError
    target: str
    said: str


def targets_of(sweeps: Sequence[TaskSweep]) -> SweepTargets | None:
    """What can be planned for; None without a sweep that names targets.

    Args:
        sweeps: Of the task, newest first.
    """
    named = next((one.sweep for one in sweeps if one.sweep.targets), None)
    return None if named is None else SweepTargets(named.metric, tuple(named.targets))


async def at_target(session: AsyncSession, evidence: TaskEvidence, target: float) -> AtTarget:
    """The fit of the task's newest sweep at this target.

    Raises:
        InvalidInput: Without a sweep, or where its fit is refused.
    """
    newest = next(iter(evidence.sweeps), None)
    if newest is None:
        raise refuse("sweep_target", "the task has no sweep to take a target from", target)
    found = await critical_batch.of_sweep(session, newest.sweep.id, targets=[target], level=LEVEL)
    answer = found.targets[0]
    if isinstance(answer.outcome, Refusal):
        raise refuse("sweep_target", f"no critical batch at {target:g}: {answer.outcome.explanation}", target)
    critical = answer.outcome.critical_batch
    # where the curve is narrowest its steps and B_crit hang together least; the plan's trade-off knows no turn
    curve = [one for one in answer.curve if one.batch_size >= answer.outcome.least_batch]
    point = min(curve, key=lambda one: one.high / one.low)
    steps = math.exp(answer.outcome.log_steps_without_turn(math.log(point.batch_size)))
    called = f"{newest.sweep.metric or 'the target'} {target:g}"
    return AtTarget(
        critical_batch=estimate_from_interval(critical.value, low=critical.low, high=critical.high, level=LEVEL),
        plan=RestOfPlan(steps, point.batch_size),
        plan_error=LogError(math.log(point.steps / point.low), math.log(point.high / point.steps)),
        target=called,
        said=f"From {name_of(newest.sweep, evidence.task.name)}, fitted at {called}.",
    )


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of a run's trade-off.

    Attributes:
        critical: B_crit in examples, with its errors and odds.
        plan: What is left of its plan; None without one.
        pace: Time and price of its steps; None without step times.
        growth: q of φ ∝ progress^q.
        profile: φ × κ over the rest of the plan, as its schedule predicts it; empty without a plan.
        example: What is sampled independently, as a word.
        unit: Display unit.
        units_per_example: Display units of an example.
        said: Where B_crit comes from, as a sentence.
        target: What the plan reaches, in words.
        present_batch: In use now, or by the task's longest resolved run; None where nothing tells.
        num_examples: Size of the data; None where no config tells.
        plan_error: Log error of the plan's steps, where a sweep's curve tells them.
        targets: Of the task's newest sweep; None for a run, or without a sweep.
        asked: What was asked, with what the project says where nobody has.
    """

    critical: Critical
    plan: RestOfPlan | None
    pace: Pace | None
    growth: float
    profile: list[Stretch]
    example: str
    unit: str
    units_per_example: float
    said: str
    target: str
    present_batch: float | None = None
    num_examples: float | None = None
    plan_error: LogError = EXACT
    targets: SweepTargets | None = None
    asked: Question = NOTHING_ASKED


async def of_run(session: AsyncSession, whole_runs: WholeRuns, run_id: UUID, asked: Question) -> Source:
    """The trade-off of a run's latest window to the end of its plan.

    Raises:
        RunNotFound: When no run has this id.
        InvalidInput: While nothing is known of its noise scale.
    """
    advice = await run_advice.advise(session, whole_runs, run_id, asked)
    run, asked = advice.so_far, advice.asked
    kappa = await known_kappa.of_run(session, advice.run)
    worth, critical = worth_of(asked, run), Measured(kappa).critical(run)
    priced = None if isinstance(worth, Missing) else price(critical, worth)
    if priced is None or critical is None or run.batch_size is None:
        reason = advice.recommendation.reason
        raise refuse("run_id", f"its noise scale says nothing yet: {reason} Give critical_batch instead", str(run_id))
    exponent, foretold = profile(run, priced.critical.value) if run.steps_left > 0 else (growth(run.spent)[0], [])
    return Source(
        critical=critical,
        plan=RestOfPlan(run.steps_left, run.batch_size) if run.steps_left > 0 else None,
        pace=pace_of(run, asked),
        growth=exponent,
        profile=foretold,
        example=run.example,
        unit=run.unit,
        units_per_example=run.units_per_example,
        said=f"κ × the noise scale by all steps so far. {kappa.said}",
        target="the end of the plan",
        present_batch=run.batch_size,
        num_examples=data_size(run),
        asked=asked,
    )


async def of_task(
    session: AsyncSession,
    whole_runs: WholeRuns,
    project: str,
    task: str,
    *,
    optimizer: str | None,
    asked: Question,
    sweep_target: float | None = None,
) -> Source:
    """The trade-off of a task from its earlier sweeps and runs, to the target of a sweep or as long as an earlier run.

    Both errors of B_crit are in its statistical part: the sources are combined before they come here. Step times,
    devices and price are those of the longest resolved run.

    Raises:
        TaskNotFound: When the project has no task of this name.
        InvalidInput: While nothing is known of its critical batch.
    """
    without_limits = Question(preference=asked.preference, examples_per_step=asked.examples_per_step)
    advice = await task_advice.advise(
        session, whole_runs, project, task, optimizer=optimizer, asked=without_limits, has_schedule=False
    )
    found, evidence = advice.recommendation.critical_batch, advice.evidence
    if found is None or not found.low > 0:
        reason = advice.recommendation.reason
        raise refuse("task", f"nothing is known of its critical batch: {reason} Give critical_batch instead", task)
    own_price = None if advice.past is None else advice.past.usd_per_device_hour
    asked = filled(asked, await defaults.of_id(session, evidence.task.project_id), own_price=own_price)
    past = _at_price(advice.past, asked.usd_per_device_hour)
    plan, plan_error, target = _plan(advice)
    known = Source(
        critical=stated_critical(
            estimate_from_interval(found.value, low=found.low, high=found.high, level=found.level)
        ),
        plan=plan,
        pace=None if past is None else _pace(past, asked),
        growth=0.0 if past is None else growth(past.spent)[0],
        profile=[],
        example=evidence.example,
        unit=evidence.unit,
        units_per_example=evidence.units_per_example,
        said=advice.recommendation.reason,
        target=target,
        present_batch=None if past is None else past.batch_size,
        num_examples=None if past is None else data_size(past),
        plan_error=plan_error,
        targets=targets_of(evidence.sweeps),
        asked=asked,
    )
    if sweep_target is None:
        return known
    at = await at_target(session, evidence, sweep_target)
    return replace(
        known,
        critical=stated_critical(at.critical_batch),
        plan=at.plan,
        plan_error=at.plan_error,
        target=at.target,
        said=at.said,
    )


def _at_price(run: RunSoFar | None, usd_per_device_hour: float | None) -> RunSoFar | None:
    """The run as if a device had cost that much; None: what it said itself."""
    if run is None or usd_per_device_hour is None:
        return run
    return replace(run, usd_per_device_hour=usd_per_device_hour)


def _pace(run: RunSoFar, asked: Question) -> Pace | None:
    try:
        return pace_of(run, asked)
    except DomainError as error:
        raise refuse("interruptions_per_device_hour", str(error)) from error


def _plan(advice: TaskAdvice) -> tuple[RestOfPlan | None, LogError, str]:
    """Steps at one batch with their error, and what they reach: a sweep's target, else the longest run's end."""
    reached, setting = next(iter(advice.to_target), None), advice.setting
    if reached is not None:
        return RestOfPlan(reached.steps.value, reached.batch_size), _error_of(reached.steps), _target_of(reached.sweep)
    if setting is None:
        return None, EXACT, "the target"
    plan = RestOfPlan(setting.num_steps, setting.batch_size)
    if not setting.is_tuned:
        return plan, EXACT, "the end of a run as long as the longest so far"
    tuned = next(one for one in advice.evidence.sweeps if one.row.tuned)
    # the recommended batch lies beyond the curve: the tuned one is on it
    steps = task_advice.curve_of(tuned).steps(setting.batch_size)
    if steps is None:
        return plan, EXACT, _target_of(tuned)
    return RestOfPlan(steps.value, setting.batch_size), _error_of(steps), _target_of(tuned)


def _error_of(steps: Interval) -> LogError:
    return LogError(max(math.log(steps.value / steps.low), 0.0), max(math.log(steps.high / steps.value), 0.0))


def _target_of(sweep: TaskSweep) -> str:
    goal = sweep.row.target
    return "the sweep's target" if goal is None else f"the sweep's target {goal:g}"
