"""The batch for the rest of a run: what deadlines, budgets and devices allow, and stages that follow the noise scale.

Pure, from the latest noise scale and the run so far. The forecast continues φ as the power of progress that the run
has shown, and is only as good as that; nothing is foretold from a noise scale that is not resolved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from noisescale.estimators.uncertainty import State
from noisescale.theory import limits as theory_limits
from noisescale.theory import schedule as theory
from noisescale.theory.advice.parts import RunSoFar, SpentPoint
from noisescale.theory.efficiency import step_efficiency
from noisescale.theory.learning_rate import rescale
from noisescale.theory.limits import Choice, Limit
from noisescale.theory.stages import HYSTERESIS, Bounds, Stage, stages
from noisescale.theory.trade_off import TradeOff

NUM_PIECES = 50
"""Pieces that the rest of the run is forecast in; a factor of 10 in φ is then 5 % a piece."""

MIN_STRETCHES = 8
"""Resolved stretches in the later half of the progress that a growth is read from; with fewer φ is held."""

STEEPEST = 10.0
"""An exponent beyond it, a factor of 1,000 in one doubling of the progress, is noise and no growth: φ is held."""

SMALLEST, LARGEST = 1e-9, 1e15
"""Batches and noise scales beyond are of vanished gradients: products of them leave float64, and no run can act."""

HORIZON = 2.0
"""Growth read from the later half of the progress is carried as far again: up to twice the progress, then φ is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the reader has; None where it limits nothing.

    Attributes:
        max_steps: Optimizer steps that may still be taken.
        max_examples: Examples that may still be used.
        examples_per_device: Largest micro-batch that fits on a device.
        num_devices: Data-parallel devices.
        max_micro_batches: Micro-batches that may be accumulated in a step; None: any number.
    """

    max_steps: float | None = None
    max_examples: float | None = None
    examples_per_device: int | None = None
    num_devices: int | None = None
    max_micro_batches: int | None = None


@dataclass(frozen=True, slots=True)
class AdvisedStage:
    """A part of the rest of the run.

    Attributes:
        step: Optimizer step at which it begins.
        examples: Examples used before it, from the run's start.
        num_steps: Optimizer steps that it takes.
        batch_size: Global batch in examples.
        learning_rate: For this batch, from the present batch and rate; None where the run logs none.
    """

    step: int
    examples: float
    num_steps: float
    batch_size: int
    learning_rate: float | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Stages for the rest of the run, and why.

    Attributes:
        stages: Oldest first, the first one from now on.
        growth_exponent: q of φ ∝ progress^q, the forecast; 0 where φ is held as it is.
        gamma: γ of the forecast.
        saving: What the best schedule saves against the best constant batch, as a share of the cost.
        hysteresis: Factor that a change must exceed.
        why: One sentence.
    """

    stages: tuple[AdvisedStage, ...]
    growth_exponent: float
    gamma: float
    saving: float
    hysteresis: float
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The batch that all limits allow and the schedule; each None with a sentence why.

    Attributes:
        choice: The batch at the stated price, moved into the limits.
        schedule: For the rest of the run.
        missing: What is missing for a schedule.
    """

    choice: Choice | None
    schedule: Schedule | None
    missing: str | None


def plan(
    run: RunSoFar, given: Constraints, *, best: float | None, rate: float | None, steps_done: int, steps_left: int
) -> Plan:
    """What to do for the rest of the run.

    Args:
        run: As it stands.
        given: What limits it.
        best: √(r φ) in examples; None where nothing can be said.
        rate: r, examples per step.
        steps_done: Optimizer steps so far.
        steps_left: Of the plan at the present batch; 0 where no plan is known.
    """
    phi, batch = run.noise_scale.value, run.batch_size
    if phi is None or batch is None or best is None or rate is None or run.noise_scale.state is not State.RESOLVED:
        return Plan(None, None, "A schedule needs a resolved noise scale and a known batch size.")
    if not all(SMALLEST < size < LARGEST for size in (phi, batch, best, rate)):
        return Plan(None, None, "A noise scale or batch so far from any run's plans nothing: look at the measurement.")
    if steps_left <= 0 and (given.max_steps is not None or given.max_examples is not None):
        return Plan(None, None, "A deadline or a budget needs a plan: pass planned_steps to noisescale.init().")
    if steps_left <= 0:
        return Plan(theory_limits.choose(best, _of_devices(given)), None, "A schedule needs planned_steps beyond now.")
    choice = theory_limits.choose(best, [*_of_plan(given, phi, batch, steps_left), *_of_devices(given)])
    if choice.batch is None:
        return Plan(choice, None, choice.text)
    # a limit that binds raises or lowers what a step is worth: the r at which its batch is the best
    priced = choice.batch * (choice.batch / phi) if choice.binding else rate
    return Plan(choice, _schedule(run, given, rate=priced, steps_done=steps_done, steps_left=steps_left), None)


def _of_plan(given: Constraints, phi: float, batch: float, steps_left: int) -> list[Limit]:
    trade_off = TradeOff.from_run(steps=steps_left, batch=batch, critical_batch=phi, target="the end of the plan")
    found = []
    if given.max_steps is not None:
        found.append(theory_limits.deadline_in_steps(trade_off, max_steps=given.max_steps))
    if given.max_examples is not None:
        found.append(theory_limits.budget_of_examples(trade_off, max_examples=given.max_examples))
    return found


def _of_devices(given: Constraints) -> list[Limit]:
    found = [] if given.num_devices is None else [theory_limits.every_device_busy(num_devices=given.num_devices)]
    if given.examples_per_device is not None:
        found.append(
            theory_limits.memory(
                max_examples_per_device=given.examples_per_device,
                num_devices=given.num_devices or 1,
                max_micro_batches=given.max_micro_batches,
            )
        )
    return found


def _schedule(run: RunSoFar, given: Constraints, *, rate: float, steps_done: int, steps_left: int) -> Schedule:
    phi, batch = run.noise_scale.value, run.batch_size
    assert phi is not None
    assert batch is not None
    exponent, progress = growth(run.spent)
    profile = forecast(phi, batch, exponent=exponent, progress=progress, steps_left=steps_left)
    multiple = (given.examples_per_device or 1) * (given.num_devices or 1)
    largest = math.inf if given.max_micro_batches is None else float(multiple * given.max_micro_batches)
    found = stages(profile, examples_per_step=rate, bounds=Bounds(multiple_of=multiple, largest=largest))
    gamma = theory.gamma(profile)
    mean = theory.trade_off_of(profile, target="the end of the plan").critical_batch
    used = math.fsum(point.examples for point in run.spent)
    return Schedule(
        stages=tuple(_advised(stage, run, steps_done=steps_done, used=used) for stage in found),
        growth_exponent=exponent,
        gamma=gamma,
        saving=theory.saving(gamma=gamma, balance=rate / mean),
        hysteresis=HYSTERESIS,
        why=_why(exponent, len(found)),
    )


def growth(spent: Sequence[SpentPoint]) -> tuple[float, float]:
    """The q of φ ∝ progress^q over the later half of the progress, and the progress in ideal steps.

    q is 0 where too few stretches have a noise scale, or they scatter too much to show a growth. An ideal step is what
    B + φ examples buy (McCandlish et al. 2018, arXiv:1812.06162, eq. D.1).
    """
    so_far, points = 0.0, []
    for point in spent:
        if point.batch_size and point.value and point.examples > 0 and SMALLEST < point.value < LARGEST:
            so_far += point.examples / point.batch_size * step_efficiency(point.value, point.batch_size)
            points.append((so_far, point.value))
    later = [(math.log(s), math.log(phi)) for s, phi in points if s > so_far / 2]
    if len(later) < MIN_STRETCHES or later[0][0] == later[-1][0]:
        return 0.0, so_far
    exponent = linear_regression(*zip(*later, strict=True)).slope
    return (exponent if abs(exponent) < STEEPEST else 0.0), so_far


def forecast(phi: float, batch: float, *, exponent: float, progress: float, steps_left: int) -> list[theory.Stretch]:
    """The noise scale over what the plan would still reach at the present batch.

    Args:
        phi: Now, in examples.
        batch: Now, in examples.
        exponent: q of φ ∝ progress^q, up to `HORIZON` times the progress.
        progress: Ideal steps so far; without any φ is held.
        steps_left: Optimizer steps of the plan at the present batch.
    """
    found, reached = [], progress
    for _ in range(NUM_PIECES):
        value = phi * min(reached / progress, HORIZON) ** exponent if progress > 0 else phi
        ideal = steps_left / NUM_PIECES * step_efficiency(value, batch)
        found.append(theory.Stretch(ideal, value))
        reached += ideal
    return found


def _advised(stage: Stage, run: RunSoFar, *, steps_done: int, used: float) -> AdvisedStage:
    rate, batch, phi = run.learning_rate, run.batch_size, run.noise_scale.value
    assert batch is not None
    assert phi is not None
    rule = rescale(optimizer=run.optimizer, from_batch=batch, to_batch=stage.batch, noise_scale=phi)
    return AdvisedStage(
        step=steps_done + round(stage.first_step),
        examples=used + stage.first_example,
        num_steps=stage.steps,
        batch_size=stage.batch,
        learning_rate=None if rate is None else rate * rule.factor,
    )


def _why(exponent: float, num_stages: int) -> str:
    course = (
        f"The noise scale has gone as progress^{exponent:.2f} and is taken to go on so up to twice the progress"
        if exponent
        else "The noise scale is held as it is now: the run so far does not show how it grows"
    )
    change = "one batch is enough" if num_stages == 1 else f"the batch rises {num_stages - 1} times"
    return f"{course}; a change below {HYSTERESIS:g} × costs at most 3 %, so {change}."
