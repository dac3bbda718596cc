"""The critical batch that a planner's table is about: of a run, or of a task before its next run."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import State
from noisescale.theory.advice.pace import Pace, pace_of
from noisescale.theory.advice.plan import growth, profile
from noisescale.theory.advice.pricing import price
from noisescale.theory.intervals import Estimate, estimate_from_interval
from noisescale.theory.schedule import Stretch
from noisescale.theory.what_if import Plan
from noisescale_server.services import known_kappa, run_advice, task_advice
from noisescale_server.services.errors import refuse
from noisescale_server.services.run_advice import Question
from noisescale_server.services.whole_run import WholeRuns


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of a run's trade-off.

    Attributes:
        critical_batch: B_crit in examples, with its errors.
        plan: What is left of its plan; None without one.
        pace: Time and price of its steps; None without step times.
        growth: q of φ ∝ progress^q.
        profile: φ × κ over the rest of the plan, as its schedule foretells it; empty without a plan.
        example: What is sampled independently, as a word.
        unit: Display unit.
        units_per_example: Display units of an example.
        said: Where B_crit comes from, as a sentence.
        target: What the plan reaches, in words.
    """

    critical_batch: Estimate
    plan: Plan | None
    pace: Pace | None
    growth: float
    profile: list[Stretch]
    example: str
    unit: str
    units_per_example: float
    said: str
    target: str


async def of_run(session: AsyncSession, whole_runs: WholeRuns, run_id: UUID, asked: Question) -> Source:
    """The trade-off of a run's latest window to the end of its plan.

    Raises:
        RunNotFound: When no run has this id.
        InvalidInput: While its noise scale is not resolved.
    """
    advice = await run_advice.advise(session, whole_runs, run_id, asked)
    run = advice.so_far
    kappa = await known_kappa.of_run(session, advice.run)
    priced = price(run.noise_scale, asked.wish, kappa) if run.noise_scale.state is State.RESOLVED else None
    if priced is None or run.batch_size is None:
        reason = advice.recommendation.reason
        raise refuse("run_id", f"its noise scale says nothing yet: {reason} Give critical_batch instead", str(run_id))
    exponent, foretold = profile(run, priced.critical.value) if run.steps_left > 0 else (growth(run.spent)[0], [])
    return Source(
        critical_batch=priced.critical,
        plan=Plan(run.steps_left, run.batch_size) if run.steps_left > 0 else None,
        pace=pace_of(run, asked.wish, asked.given),
        growth=exponent,
        profile=foretold,
        example=run.example,
        unit=run.unit,
        units_per_example=run.units_per_example,
        said=f"κ × the noise scale of the latest window. {kappa.said}",
        target="the end of the plan",
    )


async def of_task(
    session: AsyncSession, whole_runs: WholeRuns, project: str, task: str, *, optimizer: str | None, asked: Question
) -> Source:
    """The trade-off of a task from its earlier sweeps and runs, to the target of a sweep.

    Both errors of B_crit are in its statistical part: the sources are combined before they come here.

    Raises:
        TaskNotFound: When the project has no task of this name.
        InvalidInput: While nothing is known of its critical batch.
    """
    advice = await task_advice.advise(session, whole_runs, project, task, optimizer=optimizer, asked=asked)
    found, evidence = advice.recommendation.critical_batch, advice.evidence
    if found is None or not found.low > 0:
        reason = advice.recommendation.reason
        raise refuse("task", f"nothing is known of its critical batch: {reason} Give critical_batch instead", task)
    reached = next(iter(advice.to_target), None)
    goal = None if reached is None else reached.sweep.row.target
    return Source(
        critical_batch=estimate_from_interval(found.value, low=found.low, high=found.high, level=found.level),
        plan=None if reached is None else Plan(reached.steps, reached.batch_size),
        pace=None,
        growth=0.0,
        profile=[],
        example=evidence.example,
        unit=evidence.unit,
        units_per_example=evidence.units_per_example,
        said=advice.recommendation.reason,
        target="the target" if goal is None else f"the sweep's target {goal:g}",
    )
