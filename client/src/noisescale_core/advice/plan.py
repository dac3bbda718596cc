"""The batch for the rest of a run: what deadlines, budgets and devices allow, and stages that follow the noise scale.

Pure, from the latest noise scale and the run so far. The forecast continues φ as the power of progress that the run
has shown, and is only as good as that; nothing is foretold from a noise scale that is not resolved.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import TYPE_CHECKING

from noisescale_core.advice.evidence.critical_belief import LARGEST, SMALLEST
from noisescale_core.advice.evidence.evidence import Evidence
from noisescale_core.advice.limited import NO_WHOLE_BATCH, Inside, rounding
from noisescale_core.advice.parts.known_noise_scale import is_decayed, peak_of
from noisescale_core.advice.parts.parts import Interval, RunSetting, SpentPoint
from noisescale_core.advice.question import Limits
from noisescale_core.theory import schedule as theory
from noisescale_core.theory.learning_rate import rescale
from noisescale_core.theory.schedule import HYSTERESIS, Bounds, Stage, stages
from noisescale_core.theory.trade_off import step_efficiency

if TYPE_CHECKING:
    from noisescale_core.advice.limits.pricing import Priced


NUM_PIECES = 50
"""Pieces that the rest of the run is forecast in; a factor of 10 in φ is then 5 % a piece."""

MIN_STRETCHES = 8
"""Resolved stretches in the later half of the progress that a growth is read from; with fewer φ is held."""

STEEPEST = 10.0
"""An exponent beyond it, a factor of 1,000 in one doubling of the progress, is noise and no growth: φ is held."""

HORIZON = 2.0
"""Growth read from the later half of the progress is carried as far again: up to twice the progress, then φ is held."""


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
    """The schedule, or a sentence why there is none.

    Attributes:
        schedule: For the rest of the run.
        missing: What is missing for it.
    """

    schedule: Schedule | None
    missing: str | None


def plan(
    run: RunSetting,
    evidence: Evidence,
    given: Limits,
    *,
    priced: "Priced | None",
    found: Inside | None,
    not_judged: str | None = None,
) -> Plan:
    """What to do for the rest of the run.

    Args:
        run: As it stands.
        evidence: What B_crit is known from.
        given: What limits it.
        priced: B_crit and the price; None where nothing can be said.
        found: The best batch inside the limits; None where they cannot be judged.
        not_judged: What is missing for the price or the limits; None where nothing is.
    """
    missing = _missing(run, evidence, priced, found, not_judged)
    if missing is not None or priced is None or found is None or found.choice.batch is None:
        return Plan(None, missing)
    # the r at which this batch is the best: a limit that binds raises or lowers what a step is worth
    rate = found.choice.batch * (found.choice.batch / priced.critical.value)
    rounded = rounding(found, given, priced)
    return Plan(_schedule(run, priced.critical_batch, rate=rate, rounded=rounded), None)


def _missing(
    run: RunSetting, evidence: Evidence, priced: "Priced | None", found: Inside | None, not_judged: str | None
) -> str | None:
    if not evidence.is_resolved(run) or run.batch_size is None:
        return "A schedule needs a resolved noise scale and a known batch size."
    if run.steps_left <= 0:
        return "A schedule needs planned_steps beyond now."
    if is_decayed(run):
        return "A schedule needs a noise scale from before the learning rate fell below a tenth of its peak."
    if not_judged is not None or priced is None or found is None:
        return not_judged or "The limits cannot be judged yet, so nothing is planned inside them."
    if found.choice.batch is None:
        return found.limited.text
    return NO_WHOLE_BATCH if found.batch is None else None


def _schedule(run: RunSetting, critical: Interval, *, rate: float, rounded: Callable[[float], int]) -> Schedule:
    exponent, foretold = profile(run, critical.value)
    found = stages(foretold, examples_per_step=rate, bounds=Bounds(), rounded=rounded)
    gamma = theory.gamma(foretold)
    mean = theory.trade_off_of(foretold, target="the end of the plan").critical_batch
    used = math.fsum(point.examples for point in run.spent)
    return Schedule(
        stages=tuple(_advised(stage, run, critical.value, used=used) for stage in found),
        growth_exponent=exponent,
        gamma=gamma,
        saving=theory.saving(gamma=gamma, balance=rate / mean),
        hysteresis=HYSTERESIS,
        why=_why(exponent, len(found)),
    )


def profile(run: RunSetting, critical_batch: float) -> tuple[float, list[theory.Stretch]]:
    """The growth that the run has shown, q of φ ∝ progress^q, and κ φ over the rest of the plan.

    Args:
        run: As it stands, with a noise scale and a batch.
        critical_batch: κ φ now, in examples.
    """
    batch = run.batch_size
    assert batch is not None
    exponent, progress = growth(run.spent)
    # the plan reaches what it reaches at the present batch, judged by the critical batch and not by the noise scale
    foretold = forecast(critical_batch, batch, exponent=exponent, progress=progress, steps_left=run.steps_left)
    return exponent, foretold


def growth(spent: Sequence[SpentPoint]) -> tuple[float, float]:
    """The q of φ ∝ progress^q over the later half of the progress, and the progress in ideal steps.

    Tentative stretches, and those whose learning rate is below a tenth of the peak, count as progress and not for q. q
    is 0 where too few stretches remain, or they scatter too much to show a growth. An ideal step is what
    B + φ examples buy (McCandlish et al. 2018, arXiv:1812.06162, eq. D.1).
    """
    so_far, points = 0.0, []
    peak = peak_of(spent)
    for point in spent:
        if point.batch_size and point.value and point.examples > 0 and SMALLEST < point.value < LARGEST:
            so_far += point.examples / point.batch_size * step_efficiency(point.value, point.batch_size)
            if point.is_resolved and peak.informs(point.learning_rate, point.batch_size):
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


def _advised(stage: Stage, run: RunSetting, critical: float, *, used: float) -> AdvisedStage:
    rate, batch = run.learning_rate, run.batch_size
    assert batch is not None
    rule = rescale(optimizer=run.optimizer, from_batch=batch, to_batch=stage.batch, noise_scale=critical)
    return AdvisedStage(
        step=run.steps_done + round(stage.first_step),
        examples=used + stage.first_example,
        num_steps=stage.steps,
        batch_size=stage.batch,
        learning_rate=None if rate is None else rate * rule.factor,
    )


def _why(exponent: float, num_stages: int) -> str:
    course = (
        f"Assumes the noise scale goes on as it has (progress^{exponent:.2f}) up to twice the progress"
        if exponent
        else "Assumes the noise scale stays as it is: the run so far does not show how it grows"
    )
    times = {2: "once", 3: "twice"}.get(num_stages, f"{num_stages - 1} times")
    change = "one batch is enough" if num_stages == 1 else f"the batch rises {times}"
    return f"{course}; a change below {HYSTERESIS:g} × costs at most 3 %, so {change}."
