"""The decision with its sentences: headline, reason, effect and what to do next."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisescale_core.advice import decision
from noisescale_core.advice.decision import CHANGES
from noisescale_core.advice.evidence.evidence import Evidence, Prior, Swept, begun
from noisescale_core.advice.limited import NO_WHOLE_BATCH, Inside, round_batch
from noisescale_core.advice.limits.predictions import Prediction, Predictions
from noisescale_core.advice.limits.pricing import Priced
from noisescale_core.advice.limits.worth import Missing
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import (
    AnyDecision,
    Caution,
    DecisionWord,
    Predicted,
    RateOff,
    RunSetting,
    RunSoFar,
    Sureness,
)
from noisescale_core.advice.question import Limits
from noisescale_core.advice.surer import Surer
from noisescale_core.advice.words import of_a_run as wording
from noisescale_core.advice.words import of_a_task, of_divergence, of_the_rate
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.theory.expected_cost import Stake

LONGER = 1.05
"""Less is within what step times vary by."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do, in words.

    Attributes:
        decision: What to do.
        headline: The same in a few words.
        reason: Why, in one sentence or two.
        effect: What it would change, or what is possible; None where nothing can be said.
        next_step: What would make it surer.
        short_reason: Why, in one short sentence; empty where `reason` is one.
        sureness: That a change is cheaper.
    """

    decision: AnyDecision
    headline: str
    reason: str
    effect: str | None
    next_step: str
    short_reason: str = ""
    sureness: Sureness | None = None


def without_value(run: RunSetting, evidence: Evidence, missing: Missing | None, options: Sequence[Surer]) -> Verdict:
    """The verdict where no batch can be recommended: what is missing, and what it costs.

    Args:
        run: As it stands.
        evidence: What B_crit is known from.
        missing: What is missing besides a noise scale.
        options: What would make it surer.
    """
    word: DecisionWord = "insufficient_evidence"
    if isinstance(evidence, Prior):
        return Verdict(word, wording.NOT_ENOUGH, of_a_task.missing(evidence), None, of_a_task.way_out(evidence))
    if isinstance(evidence, Swept) and missing is None:
        return Verdict(word, wording.NOT_ENOUGH, of_a_task.NO_SETTING, None, of_a_task.LOG_ONE)
    if missing is not None and (isinstance(evidence, Swept) or evidence.critical(run) is not None):
        return Verdict(word, wording.NOT_ENOUGH, missing.text, None, missing.way_out)
    so_far = begun(run)
    reason, hint = wording.missing(so_far), wording.bound_hint(so_far)
    next_step = _next_step(word, so_far, evidence, options)
    return Verdict(word, wording.headline_without_value(so_far), reason, hint, next_step)


def diverged(run: RunSoFar, divergence: Divergence) -> Verdict:
    """The verdict on a run whose loss or gradients are not finite: no batch mends it.

    Args:
        run: As it stands.
        divergence: Since when.
    """
    reason = of_divergence.sentence(divergence, until_step=run.noise_scale_step)
    return Verdict("insufficient_evidence", of_divergence.HEADLINE, reason, None, of_divergence.NEXT_STEP)


def infeasible(
    run: RunSetting, evidence: Evidence, priced: Priced, found: Inside, foretold: Predictions | None
) -> Verdict:
    """The verdict where no batch meets the limits: which, and what is possible instead.

    Args:
        run: As it stands.
        evidence: What B_crit is known from.
        priced: The best batch without limits.
        found: Without a batch.
        foretold: The rest of the plan, at the batch of the price alone too; None without one.
    """
    word: DecisionWord = "insufficient_evidence"
    num_limits = len(found.choice.binding)
    headline = "No batch meets both limits" if num_limits > 1 else "No batch meets the limit"
    if found.choice.batch is not None:
        return Verdict(word, headline, NO_WHOLE_BATCH, None, "Use fewer devices or a smaller micro-batch.")
    one_alone = [limit for limit in found.choice.binding if not limit.is_possible]
    relax = "Relax it, or end the plan at an earlier loss."
    if num_limits > 1:
        relax = "Relax both: neither can be met alone." if len(one_alone) == num_limits else "Relax either."
    if not evidence.num_measurements:
        relax += " The critical batch is not calibrated here, and the limits rest on it."
    effect = " ".join(part for part in (found.limited.possible, _without_limits(priced, foretold)) if part)
    return Verdict(word, headline, found.limited.text, effect or None, relax)


def _without_limits(priced: Priced, foretold: Predictions | None) -> str | None:
    wanted = round_batch(priced.best.value)
    row = next((one for one in foretold.batches if one.batch_size == wanted), None) if foretold else None
    if row is None:
        return None
    parts = ((row.steps, "steps"), (row.hours, "h"), (row.usd, "USD"))
    said = ", ".join(f"{wording.banded(value)} {unit}" for value, unit in parts if value is not None)
    ends = f"{number(priced.critical_batch.low)} – {number(priced.critical_batch.high)}"
    least = f"All of it rests on a critical batch of {number(priced.critical.value)}, which may be {ends}."
    return f"Without limits the price chooses a batch of {wanted:,}: {said} for the rest of the plan. {least}"


def start(run: RunSetting, evidence: Swept, found: Inside, options: Sequence[Surer]) -> Verdict:
    """The verdict before a run's first step: a batch to start with.

    Args:
        run: The setting that it is changed from.
        evidence: What the task's sweeps and runs say.
        found: The best batch inside the limits, with one that can be run.
        options: What would make it surer.
    """
    assert found.batch is not None
    what_a_sweep_costs = next((one.text for one in options if one.kind == "sweep"), None)
    return Verdict(
        decision="start",
        headline=of_a_task.headline(evidence, found.batch),
        reason=of_a_task.because(evidence, run.example),
        effect=of_a_task.effect(evidence, found.batch),
        next_step=of_a_task.next_step(evidence, what_a_sweep_costs),
    )


def verdict(
    run: RunSoFar,
    evidence: Evidence,
    priced: Priced,
    found: Inside,
    at_stake: Stake,
    predicted: Predicted,
    foretold: Predictions | None,
    options: Sequence[Surer],
) -> Verdict:
    """The verdict on a batch that can be run.

    Args:
        run: As it stands, with a batch.
        evidence: What B_crit is known from.
        priced: The best batch at the price.
        found: The same inside the limits.
        at_stake: Odds of the batch inside the limits.
        predicted: Steps and examples there, relative to now.
        foretold: The rest of the plan; None without one.
        options: What would make it surer.
    """
    assert found.batch is not None
    assert run.batch_size is not None
    word = decision.word_of(at_stake, now=run.batch_size, then=found.batch, inside=found)
    if waits_for_the_rate(run, word, found):
        assert run.rate_off is not None
        return _rate_first(run.rate_off)
    headline = wording.headline(word, found.batch, run)
    if found.choice.binding and word in CHANGES:
        headline += f", your {found.choice.binding[0].kind.called}"
    reason = wording.because(run, word, priced, at_stake, found.batch)
    short_reason = wording.in_short(word, found.batch, run, at_stake, priced)
    sureness = decision.sureness_of(word, at_stake, now=run.batch_size, inside=found)
    if found.choice.binding:
        alone = f"the price alone would choose {number(priced.best.value)}"
        reason = f"{wording.compared(run)}; {alone}. {found.limited.text}"
        short_reason = found.limited.text
    elif broken := decision.broken_limits(run.batch_size, found):
        short_reason = f"The batch of {wording.batch(run.batch_size)} {broken[0].kind.breaks}."
        reason = f"{short_reason} {wording.compared(run)}."
    if found.batch == run.batch_size:
        next_step = _next_step(word, run, evidence, options, at_stake)
        return Verdict(word, headline, reason, None, next_step, short_reason, sureness)
    effect = wording.effect(word, predicted, run)
    in_money = None if foretold is None else _hours_and_usd(foretold)
    effect = effect if in_money is None else f"{effect} {in_money}"
    return Verdict(
        decision=word,
        headline=headline,
        reason=reason,
        effect=effect,
        next_step=_next_step(word, run, evidence, options, at_stake),
        short_reason=short_reason,
        sureness=sureness,
    )


def waits_for_the_rate(run: RunSoFar, word: DecisionWord, found: Inside) -> bool:
    """Whether the learning rate is to be set before the batch; a batch that breaks a limit does not wait.

    Args:
        run: As it stands, with a batch.
        word: What the odds say to do.
        found: The best batch inside the limits.
    """
    assert run.batch_size is not None
    return decision.waits_for_the_rate(word, run.rate_off) and not decision.broken_limits(run.batch_size, found)


def _rate_first(rate: RateOff) -> Verdict:
    return Verdict(
        decision="keep_for_now",
        headline=of_the_rate.SET_FIRST,
        reason=of_the_rate.before_the_batch(rate),
        effect=None,
        next_step=of_the_rate.change_it(rate),
        short_reason=of_the_rate.in_short(rate),
    )


def _next_step(
    word: DecisionWord, run: RunSoFar, evidence: Evidence, options: Sequence[Surer], at_stake: Stake | None = None
) -> str:
    said = wording.next_step(word, run, evidence, at_stake)
    if word == "insufficient_evidence":
        steps = next((one for one in options if one.kind == "more_steps" and one.hours is not None), None)
        if steps is None or wording.window_needed(run) is None:
            return said
        return f"{said} That is {wording.cost(None, steps.hours, steps.usd)}{wording.of_the_plan(run)}"
    branch = next((one for one in options if one.kind == "branch"), None)
    if branch is None or branch.steps is None or word == "keep":
        return said
    return f"{said} A branch takes about {wording.cost(branch.steps, branch.hours, branch.usd)}."


def _hours_and_usd(foretold: Predictions) -> str | None:
    now = next((one for one in foretold.batches if one.is_present), None)
    then = next((one for one in foretold.batches if one.is_recommended), None)
    if now is None or then is None or now.hours is None or then.hours is None or now is then:
        return None
    hours = f"{wording.banded(then.hours)} h instead of {number(now.hours.value)} h"
    return f"The rest of the plan: {hours}{_usd(now, then)}."


def _usd(now: Prediction, then: Prediction) -> str:
    if now.usd is None or then.usd is None:
        return ""
    return f", {wording.banded(then.usd)} USD instead of {number(now.usd.value)} USD"


# What the limits and the devices make of an advice, where that is not what the reader might expect.


def cautions(run: RunSetting, given: Limits, found: Inside | None, foretold: Predictions | None) -> tuple[Caution, ...]:
    """What to know of the limits before following the advice.

    Args:
        run: As it stands.
        given: What limits it.
        found: The best batch inside the limits; None where they cannot be judged.
        foretold: The rest of the plan; None without one.
    """
    return (*_without_effect(given), *_may_be_missed(run, found), *_takes_longer(foretold))


def _without_effect(given: Limits) -> Iterator[Caution]:
    if given.max_micro_batches is not None and given.examples_per_device is None:
        text = "max_micro_batches limits nothing until examples_per_device says how many examples a micro-batch holds."
        yield Caution("no_effect", text)
    besides = (given.interruptions_per_device_hour, given.restart_hours, given.checkpoint_hours)
    if given.spot_price_share is None and any(besides):
        yield Caution(
            "no_effect", "Interruptions are ignored unless spot_price_share says what interruptible devices cost."
        )


def _may_be_missed(run: RunSetting, found: Inside | None) -> Iterator[Caution]:
    if found is None or found.interval is None:
        return
    is_deadline = any(limit.is_deadline and limit.low > 0 for limit in found.allowed)
    if is_deadline and found.interval.high == math.inf:
        text = "no batch meets the deadline if the critical batch lies at the upper end of its interval."
        yield Caution("may_be_missed", f"The plan rests on an estimate: {text}")
    elif found.interval.low == 0:
        text = "no batch is small enough for the limits if the critical batch lies at an end of its interval."
        yield Caution("may_be_missed", f"The plan rests on an estimate: {text}")


def _takes_longer(foretold: Predictions | None) -> Iterator[Caution]:
    now = next((one for one in foretold.batches if one.is_present), None) if foretold else None
    then = next((one for one in foretold.batches if one.is_recommended), None) if foretold else None
    if now is None or then is None or now.hours is None or then.hours is None or now.num_devices != then.num_devices:
        return
    if then.batch_size > now.batch_size and then.hours.value > LONGER * now.hours.value:
        text = (
            f"On the same devices a batch of {wording.batch(then.batch_size)} takes "
            f"{wording.banded(then.hours)} h for the rest of the plan instead of {number(now.hours.value)} h: "
            "fewer steps, each of them longer. Where only time and money count, ask with fixed_hardware."
        )
        yield Caution("takes_longer", text)
