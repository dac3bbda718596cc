"""Another target of a task's sweep to plan for: B_crit and steps are then those of the sweep's fit at it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.intervals import Estimate, LogError, estimate_from_interval
from noisescale_core.theory.what_if import RestOfPlan
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.services.calibration.calibration import LEVEL
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.sweeps import critical_batch
from noisescale_server.services.tasks.evidence import TaskEvidence, TaskSweep
from noisescale_server.storage.sweeps import called as name_of


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
