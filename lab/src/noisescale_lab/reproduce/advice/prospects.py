"""The product's recommendation for a run half-way, against the answer of the task's sweep.

The recommendation is `noisescale_core.advice`, at a stated price. What it knows of κ is either the published spread,
or what somebody with sweeps of other tasks knows: a normal on the log scale, and never anything of the task itself.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.limits.pricing import Priced, price
from noisescale_core.advice.parts.parts import AnyDecision, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_core.theory import trade_off
from noisescale_core.theory.prices import worth_examples
from noisescale_lab.reproduce.advice.glimpses import Glimpse
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import Reference
from noisescale_lab.reproduce.registry import EVERY
from noisescale_lab.reproduce.stacked.optimizers import Optimizer

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Prospect:
    """What was said of a run, and whether it was so.

    Attributes:
        start: Where the run began.
        is_shown: A noise scale was shown, resolved or tentative.
        is_resolved: It was resolved.
        holds: The sweep's B_crit lies in the interval; None where nothing was shown.
        decision: In one word.
        is_right: The best batch lies on the side that the decision says; None without a decision.
        log_error: log of the estimated over the sweep's B_crit; None where nothing was shown.
        recommended: Regret in % of the recommended batch, its learning rate tuned; None where nothing was shown.
        followed: Regret of the batch of somebody who does what the decision says, and otherwise nothing.
        kept: Regret of the batch that the run has.
    """

    start: Start
    is_shown: bool
    is_resolved: bool
    holds: bool | None
    decision: AnyDecision
    is_right: bool | None
    log_error: float | None
    recommended: float | None
    followed: float
    kept: float


def known(value: float | None, like: NoiseScaleEstimate) -> NoiseScaleEstimate:
    """An estimate without statistical error.

    Args:
        value: Noise scale in examples; None where there is none.
        like: What the rest is taken from.
    """
    if value is None:
        return like
    return replace(like, state=State.RESOLVED, value=value, low=value, high=value, reason=None, updates_needed=None)


@functools.cache
def _optimizer_of(name: str) -> Optimizer:
    return EVERY[name]().optimizer


def prospect(glimpse: Glimpse, noise_scale: NoiseScaleEstimate, reference: Reference, kappa: Kappa) -> Prospect:
    """What the product recommends from this noise scale, and whether it is so.

    Args:
        glimpse: The run.
        noise_scale: What is known of its noise scale, in examples.
        reference: The answer.
        kappa: What is known of B_crit / B_simple.
    """
    asked, optimizer = Question(examples_per_step=reference.price), _optimizer_of(reference.name)
    best = math.sqrt(reference.price * reference.critical_batch)
    run = RunSoFar(
        noise_scale=noise_scale,
        batch_size=glimpse.batch,
        steps_done=glimpse.steps,
        planned_steps=glimpse.planned_steps,
        optimizer=optimizer.class_name,
        momentum=optimizer.momentum,
        known=glimpse.known if noise_scale is glimpse.latest else None,
    )
    decision = decide(run, Measured(kappa), asked)
    priced = price(Measured(kappa).critical(run), worth_examples(reference.price))
    kept = _regret(glimpse.batch, reference)
    recommended = _regret(decision.batch_size, reference) if priced and decision.batch_size else None
    changes = decision.decision in ("increase", "decrease")
    return Prospect(
        start=glimpse.start,
        is_shown=priced is not None,
        is_resolved=noise_scale.state is State.RESOLVED,
        holds=_holds(priced, reference.critical_batch),
        decision=decision.decision,
        is_right=_is_right(decision.decision, glimpse.batch, best),
        log_error=math.log(priced.critical_batch.value / reference.critical_batch) if priced else None,
        recommended=recommended,
        followed=recommended if changes and recommended is not None else kept,
        kept=kept,
    )


def kappa_elsewhere(name: str, log_kappas: Mapping[str, Sequence[float]], said: str) -> Kappa:
    """κ for a task from all others: their pooled mean, and the spread that a new run of a new task has.

    Args:
        name: The task that is asked about; its own values are not used.
        log_kappas: log κ of the runs of each task.
        said: Where they come from.
    """
    tasks = [values for task, values in log_kappas.items() if task != name and values]
    means = [fmean(values) for values in tasks]
    within = fmean(fmean((value - fmean(values)) ** 2 for value in values) for values in tasks)
    spread = math.hypot(stdev(means) * math.sqrt(1 + 1 / len(means)), math.sqrt(within))
    return Kappa(fmean(means), spread * t_quantile(0.975, len(means) - 1) / NORMAL_95, len(means), said)


def _holds(priced: Priced | None, critical_batch: float) -> bool | None:
    """Whether the interval holds the answer."""
    return None if priced is None else priced.critical_batch.low <= critical_batch <= priced.critical_batch.high


def _regret(batch: float, reference: Reference) -> float:
    """In %."""
    return 100 * trade_off.regret_at_price(
        batch=batch, critical_batch=reference.critical_batch, examples_per_step=reference.price
    )


def _is_right(decision: AnyDecision, batch: float, best: float) -> bool | None:
    """Whether the change goes towards the best batch, or keeping costs at most an eighth more."""
    if decision in ("insufficient_evidence", "keep_for_now"):
        return None
    if decision == "keep":
        return trade_off.regret(batch=batch, best=best) <= 1 / 8
    return (best > batch) == decision.endswith("increase")
