"""A schedule for a run that has not begun: the noise scale of an earlier run, replayed from its first step."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import RunSoFar
from noisescale_core.advice.plan import AdvisedStage, Schedule
from noisescale_core.theory import schedule as theory
from noisescale_core.theory.learning_rate import rescale
from noisescale_core.theory.schedule import HYSTERESIS, Bounds, stages
from noisescale_core.theory.trade_off import step_efficiency
from noisescale_server.analysis.series.steady_batch import BatchWindow, steady_batch
from noisescale_server.services.tasks.tasks import TaskEvidence

MIN_STRETCHES = 8
"""Resolved stretches that a course of the noise scale is read from."""

MIN_SHARE = 0.5
"""Of the earlier run's examples that these must cover."""


@dataclass(frozen=True, slots=True)
class TrainedWith:
    """What an earlier run trained with.

    Attributes:
        batch_size: In examples.
        learning_rate: At its peak; None where it was not logged.
        num_steps: Optimizer steps to the sweep's target, or to the run's end.
        is_tuned: It is the best of a sweep's learning rates.
    """

    batch_size: float
    learning_rate: float | None
    num_steps: int
    is_tuned: bool


def trained_with(past: RunSoFar) -> TrainedWith | None:
    """What an earlier run trained with; None without a batch.

    Where its batch changed: the one of its largest learning rate, which belongs to it, for as many steps as take the
    run's examples. All of its steps at its newest batch would be another training.
    """
    if past.batch_size is None:
        return None
    known = [(one.batch_size, one.num_steps or 0.0, one.learning_rate or 0.0) for one in past.spent if one.batch_size]
    rate = max((rate for _, _, rate in known if rate), default=None)
    num_steps = sum(steps for _, steps, _ in known)
    batch = steady_batch([BatchWindow(size, size) for size, _, _ in known], past.batch_size)
    if batch is not None or not num_steps:
        return TrainedWith(batch or past.batch_size, rate, max(past.steps_done, 1), is_tuned=False)
    batch = past.batch_size if rate is None else max(known, key=lambda one: one[2])[0]
    mean = sum(size * steps for size, steps, _ in known) / num_steps
    return TrainedWith(batch, rate, max(round(past.steps_done * mean / batch), 1), is_tuned=False)


def replayed(
    found: Recommendation,
    past: RunSoFar,
    setting: TrainedWith,
    evidence: TaskEvidence,
    rounded: Callable[[float], int],
) -> Recommendation:
    """The advice with a schedule that follows the earlier run's noise scale, where that run shows enough of it.

    Args:
        found: The advice.
        past: The earlier run.
        setting: That learning rates are changed from.
        evidence: What is known of the task.
        rounded: From a wanted batch to one inside the limits that can be run.
    """
    critical, rate = evidence.critical_batch, _rate(found)
    if found.recommended_batch_size is None or critical is None or not evidence.runs or rate is None:
        return found
    # by its own average, or a run that reads otherwise than the rest would contradict the recommended batch
    profile = _profile(past, critical.value / evidence.runs[0].run_average.value)
    if not profile:
        return replace(found, schedule=None, schedule_missing=_TOO_LITTLE)
    planned = stages(profile, examples_per_step=rate, bounds=Bounds(), rounded=rounded)
    gamma, mean = theory.gamma(profile), theory.trade_off_of(profile, target="the end of the run").critical_batch
    growth = f"goes from {number(profile[0].noise_scale)} to {number(profile[-1].noise_scale)}"
    schedule = Schedule(
        stages=tuple(
            AdvisedStage(
                step=round(stage.first_step),
                examples=stage.first_example,
                num_steps=stage.steps,
                batch_size=stage.batch,
                learning_rate=_learning_rate(setting, stage.batch, critical.value, evidence.optimizer),
            )
            for stage in planned
        ),
        growth_exponent=0.0,
        gamma=gamma,
        saving=theory.saving(gamma=gamma, balance=rate / mean),
        hysteresis=HYSTERESIS,
        why=f"κ × the noise scale of the longest earlier run {growth} {evidence.example}s; the plan follows it "
        f"from the first step, by examples used, and changes beyond a factor of {HYSTERESIS:g}.",
    )
    return replace(found, schedule=schedule, schedule_missing=None)


_TOO_LITTLE = (
    f"A schedule needs an earlier run with a resolved noise scale over {MIN_SHARE:.0%} of its examples, in "
    f"{MIN_STRETCHES} stretches or more."
)


def _rate(found: Recommendation) -> float | None:
    """Examples per step; where a limit moved the batch, those at which its batch is the best."""
    limited, critical = found.limited, found.critical_batch
    if limited is not None and limited.binding and limited.batch_size and critical is not None:
        return limited.batch_size * (limited.batch_size / critical.value)
    return None if found.exchange_rate is None else found.exchange_rate.examples_per_step


def _profile(past: RunSoFar, kappa: float) -> list[theory.Stretch]:
    """Progress and κ φ of the earlier run's resolved stretches; empty where there are too few.

    An ideal step is what B + φ examples buy (McCandlish et al. 2018, arXiv:1812.06162, eq. D.1).
    """
    known = [
        (one.examples, one.batch_size, kappa * one.value)
        for one in past.spent
        if one.is_resolved and one.value and one.batch_size and one.examples > 0
    ]
    covered, all_examples = sum(examples for examples, _, _ in known), sum(one.examples for one in past.spent)
    if len(known) < MIN_STRETCHES or covered < MIN_SHARE * all_examples:
        return []
    return [theory.Stretch(examples / size * step_efficiency(phi, size), phi) for examples, size, phi in known]


def _learning_rate(setting: TrainedWith, batch: float, critical: float, optimizer: str | None) -> float | None:
    if setting.learning_rate is None:
        return None
    rule = rescale(optimizer=optimizer, from_batch=setting.batch_size, to_batch=batch, noise_scale=critical)
    return setting.learning_rate * rule.factor
