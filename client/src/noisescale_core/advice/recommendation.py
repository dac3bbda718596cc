"""Which batch size to use now, why, how sure, and what it would change: from what a critical batch is known from.

The recommended batch is that of least expected cost, r S + E with r = examples one would spend to save a step, moved
into what the caller has. How B_crit and its odds come about: `evidence.py`; which word is said of it: `decision.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale_core.advice import effects, verdict
from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.decision import waits_for_the_rate, word_of
from noisescale_core.advice.defaults import price_sentence
from noisescale_core.advice.early import caution as caution_early
from noisescale_core.advice.effects import rescaling, waste
from noisescale_core.advice.evidence.critical_belief import LARGEST, SMALLEST
from noisescale_core.advice.evidence.evidence import Evidence, Measured, Swept, begun
from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.limited import Inside, inside, round_batch, rounding
from noisescale_core.advice.limits.bounds import missing_for
from noisescale_core.advice.limits.pace import Pace, pace_of, stay
from noisescale_core.advice.limits.predictions import Predictions, had_we_used, parallelism_of, predictions
from noisescale_core.advice.limits.pricing import Priced, price
from noisescale_core.advice.limits.worth import SPLIT, Missing, is_assumed, worth_of
from noisescale_core.advice.parts.parts import (
    AtPreference,
    Calibration,
    Caution,
    Decision,
    ExchangeRate,
    Interval,
    Odds,
    Predicted,
    RateSource,
    RunSetting,
    RunSoFar,
)
from noisescale_core.advice.plan import plan
from noisescale_core.advice.question import NOTHING_ASKED, Question
from noisescale_core.advice.surer import Surer, surer
from noisescale_core.advice.verdict import Verdict, cautions
from noisescale_core.advice.words import of_a_run as wording
from noisescale_core.advice.words import of_divergence, of_the_rate
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory import prices
from noisescale_core.theory.expected_cost import Stake, least_expected_cost, stake
from noisescale_core.theory.trade_off import example_efficiency, step_efficiency

NOT_IN_A_LIST = "A list of runs holds no schedules: ask for the recommendation of this run alone."

UNCALIBRATED = Measured()

OTHERWISE = ((0.2, "where money matters"), (0.8, "where time matters"))
"""Preferences whose batch is told besides, where the price is assumed."""

FAR_OFF = Missing(
    "This noise scale or batch is far outside what any run has had, so nothing is planned from it: check the "
    "measurement.",
    "Check the gradients: a noise scale like this comes of vanished ones.",
)


@dataclass(frozen=True, slots=True)
class _Case:
    """What was asked, and what is known so far."""

    run: RunSetting
    evidence: Evidence
    asked: Question
    pace: Pace | None
    is_of_list: bool
    priced: Priced | None = None
    found: Inside | None = None
    missing: Missing | None = None
    at_stake: Stake | None = None

    @property
    def so_far(self) -> RunSoFar | None:
        """The run itself; None of a task."""
        return begun(self.run) if isinstance(self.evidence, Measured) else None

    @property
    def waits_for_the_rate(self) -> bool:
        """Whether the learning rate is so far off that it is set first, and odds of the batch do not hold."""
        found, run, at_stake = self.found, self.so_far, self.at_stake
        if found is None or found.batch is None or run is None or run.batch_size is None or at_stake is None:
            return False
        word = word_of(at_stake, now=run.batch_size, then=found.batch, inside=found)
        return verdict.waits_for_the_rate(run, word, found)

    @property
    def has_diverged(self) -> bool:
        """Whether the run itself has no finite loss or gradients any more."""
        return self.so_far is not None and self.so_far.divergence is not None


def decide(run: RunSoFar, evidence: Evidence = UNCALIBRATED, asked: Question = NOTHING_ASKED) -> Decision:
    """The decision for a run, for a table row.

    Args:
        run: As it stands.
        evidence: What B_crit is known from.
        asked: What a step is worth.

    Raises:
        DomainError: If the preference or the exchange rate is out of range.
    """
    if run.divergence is not None:
        return _undecided(of_divergence.sentence(run.divergence, until_step=run.noise_scale_step))
    worth = worth_of(asked, run)
    if isinstance(worth, Missing):
        return _undecided(worth.text)
    priced = price(evidence.critical(run), worth)
    if priced is None or run.batch_size is None or not _is_plausible(run, priced):
        return _undecided(wording.missing(run))
    best, to_batch = priced.best, round_batch(priced.best.value)
    found = stake(priced.belief, priced.rate, now=run.batch_size, then=to_batch)
    word = word_of(found, now=run.batch_size, then=to_batch)
    if waits_for_the_rate(word, run.rate_off):
        assert run.rate_off is not None
        return Decision("keep_for_now", to_batch, best.low, best.high, of_the_rate.before_the_batch(run.rate_off))
    why = wording.because(run, word, priced, found, to_batch)
    return Decision(word, to_batch, best.low, best.high, why, found.probability, found.saving)


def _undecided(why: str) -> Decision:
    return Decision("insufficient_evidence", None, None, None, why)


def recommend(
    run: RunSetting,
    evidence: Evidence = UNCALIBRATED,
    asked: Question = NOTHING_ASKED,
    *,
    is_of_list: bool = False,
) -> Recommendation:
    """The recommendation for a run, or for the next run of a task.

    Args:
        run: As it stands, a `RunSoFar`; of a task the setting that its next run is changed from.
        evidence: What B_crit is known from.
        asked: What a step is worth, what limits the rest, and which batches to predict besides.
        is_of_list: Without what takes half of the time and no list shows: schedule, waste, counterfactual,
            parallelism and what else to set.

    Raises:
        DomainError: If the preference, the exchange rate or a limit is out of range.
    """
    worth, pace = worth_of(asked, run), pace_of(run, asked)
    case = _Case(run, evidence, asked, pace, is_of_list)
    if isinstance(worth, Missing):
        return _answer(replace(case, missing=worth))
    if case.has_diverged:
        return _answer(case)
    priced = price(evidence.critical(run), worth)
    if priced is None or run.batch_size is None:
        return _answer(case)
    missing = missing_for(run, asked, pace) or (None if _is_plausible(run, priced) else FAR_OFF)
    found = inside(priced, run, asked, pace) if missing is None else None
    at_stake = None
    if found is not None and found.batch is not None:
        at_stake = stake(priced.belief, priced.rate, now=run.batch_size, then=found.batch)
    return _answer(replace(case, priced=priced, found=found, missing=missing, at_stake=at_stake))


def calibration(kappa: Kappa, level: float) -> Calibration:
    """What an answer says of κ.

    Args:
        kappa: What is known of it.
        level: Confidence of its interval.
    """
    low, high = kappa.interval(level)
    return Calibration(
        state=kappa.state,
        kappa=Interval(kappa.value, low, high, level),
        kappa_log10_sd=kappa.log_sd / math.log(10),
        measurements=kappa.measurements,
        text=kappa.said,
    )


def _is_plausible(run: RunSetting, priced: Priced) -> bool:
    sizes = (priced.critical.value, run.batch_size or 0.0, priced.best.value, priced.exchange_rate)
    return all(SMALLEST < size < LARGEST for size in sizes)


def _answer(case: _Case) -> Recommendation:
    """The answer with what is known: without a price or a batch most of it is None."""
    run, evidence, priced, found, so_far = case.run, case.evidence, case.priced, case.found, case.so_far
    to_batch = None if found is None else found.batch
    foretold = _foretold(case)
    options = () if case.has_diverged else surer(run, evidence, None if found is None else priced, case.pace)
    factors = _factors(case)
    said = _verdict(case, factors, foretold, options)
    answer = Recommendation(
        run_id=None if so_far is None else so_far.run_id,
        step=None if so_far is None else so_far.step,
        unit=run.unit,
        example=run.example,
        units_per_example=run.units_per_example,
        noise_scale=evidence.noise_scale_of(run),
        decision=said.decision,
        headline=said.headline,
        short_reason=said.short_reason or said.reason,
        reason=said.reason,
        sureness=said.sureness,
        effect=said.effect,
        recommended_batch_size=to_batch,
        odds=_odds(case),
        otherwise=_otherwise(case),
        rounding_regret=None if found is None else found.regret,
        interval=None if priced is None else priced.best,
        calibration=calibration(evidence.kappa, (NOTHING_MEASURED if so_far is None else so_far.noise_scale).level),
        exchange_rate=_exchange_rate(run, case.asked, priced),
        preference=case.asked.preference if case.asked.is_stated else SPLIT,
        critical_batch=None if priced is None else priced.critical_batch,
        learning_rate=None
        if to_batch is None or priced is None or case.waits_for_the_rate
        else effects.learning_rate_advice(run, priced.critical_batch, to_batch),
        warnings=_cautions(case, foretold),
        next_step=said.next_step,
        limited=None if found is None else found.limited,
        predictions=foretold,
        schedule_missing=NOT_IN_A_LIST,
    )
    if so_far is not None:
        answer = _of_the_run_itself(answer, so_far, case.priced, factors, options)
    return answer if case.is_of_list else _with_the_rest(answer, case)


def _of_the_run_itself(
    answer: Recommendation,
    run: RunSoFar,
    priced: Priced | None,
    factors: Predicted | None,
    options: tuple[Surer, ...],
) -> Recommendation:
    """The answer with what only a run that has begun can be told."""
    to_batch = answer.recommended_batch_size
    return replace(
        answer,
        current_batch_size=run.batch_size,
        statistical_interval=None if priced is None else priced.best_statistical,
        example_efficiency=None if to_batch is None else effects.now_and_then(example_efficiency, run, to_batch),
        step_efficiency=None if to_batch is None else effects.now_and_then(step_efficiency, run, to_batch),
        predicted=factors,
        next_steps=options,
    )


def _with_the_rest(answer: Recommendation, case: _Case) -> Recommendation:
    """The answer with what only a page of its own shows."""
    run, so_far, to_batch = case.run, case.so_far, answer.recommended_batch_size
    whole = None if case.found is None else case.priced
    not_judged = None if case.missing is None else case.missing.text
    if case.waits_for_the_rate:
        to_batch, not_judged = None, of_the_rate.NO_SCHEDULE
    rest = plan(run, case.evidence, case.asked, priced=case.priced, found=case.found, not_judged=not_judged)
    set_with = rescaling(run, run.config, None if case.priced is None else case.priced.critical_batch, to_batch)
    answer = replace(
        answer,
        parallelism=None if whole is None else parallelism_of(run, whole, case.asked),
        rescaling=None if set_with is None else set_with.changes,
        schedule=rest.schedule,
        schedule_missing=rest.missing,
    )
    if so_far is None:
        return answer
    return replace(
        answer,
        waste=waste(so_far.spent, so_far.usd_spent, devices_stay=stay(run, case.asked)),
        counterfactual=None if to_batch is None else had_we_used(so_far, batch=to_batch, asked=case.asked),
    )


def _cautions(case: _Case, foretold: Predictions | None) -> tuple[Caution, ...]:
    """What to know before following the advice, what changes its worth first."""
    run, found = case.run, case.found
    young = None if case.so_far is None else caution_early(case.so_far)
    first = () if young is None or case.has_diverged else (young,)
    said = list(wording.warnings(run, case.evidence))
    if case.priced is not None and is_assumed(case.asked):
        said.append(wording.price_is_assumed(case.priced.rate.said))
    money = price_sentence(case.asked)
    if money is not None and case.pace is not None:
        said.append(Caution("price_of_project", money))
    return (*first, *said, *cautions(run, case.asked, found, foretold))


def _foretold(case: _Case) -> Predictions | None:
    if case.priced is None or case.found is None:
        return None
    # where no batch meets the limits, what the price alone would take is what is possible
    best = () if case.found.batch is not None else (float(round_batch(case.priced.best.value)),)
    return predictions(
        case.run, case.priced, case.pace, recommended=case.found.batch, asked=(*case.asked.batch_sizes, *best)
    )


def _factors(case: _Case) -> Predicted | None:
    if case.priced is None or case.found is None or case.found.batch is None or case.run.batch_size is None:
        return None
    return effects.predicted_factors(case.run.batch_size, case.found.batch, case.priced.critical_batch)


def _verdict(case: _Case, factors: Predicted | None, foretold: Predictions | None, options: Sequence[Surer]) -> Verdict:
    run, evidence, so_far = case.run, case.evidence, case.so_far
    if so_far is not None and so_far.divergence is not None:
        return verdict.diverged(so_far, so_far.divergence)
    if case.priced is None or case.found is None:
        return verdict.without_value(run, evidence, case.missing, options)
    if factors is None:
        return verdict.infeasible(run, evidence, case.priced, case.found, foretold)
    if isinstance(evidence, Swept):
        return verdict.start(run, evidence, case.found, options)
    assert case.at_stake is not None
    assert so_far is not None
    return verdict.verdict(so_far, evidence, case.priced, case.found, case.at_stake, factors, foretold, options)


def _exchange_rate(run: RunSetting, asked: Question, priced: Priced | None) -> ExchangeRate | None:
    source: RateSource = "preference"
    if asked.is_stated and asked.preference != SPLIT and not _is_fallback(asked, priced):
        source = asked.ways[0]  # type: ignore[assignment]  # names of fields
    elif priced is not None and priced.rate.examples_per_step is not None:
        source = "fixed_hardware"
    if priced is not None:
        return ExchangeRate(priced.exchange_rate, source, priced.rate.said)
    said = asked.examples_per_step
    return None if said is None else ExchangeRate(said, source, f"a step saved is worth {said:g} examples")


def _is_fallback(asked: Question, priced: Priced | None) -> bool:
    """Whether the project wants step times to tell the price, and they do not."""
    is_relative = priced is not None and priced.rate.examples_per_step is None
    return asked.fixed_hardware and "fixed_hardware" in asked.project_says and is_relative


def _odds(case: _Case) -> Odds | None:
    """What a run with a batch has at a rate at which odds hold: a task has no present batch to compare with."""
    found, so_far = case.at_stake, case.so_far
    if found is None or so_far is None or case.waits_for_the_rate:
        return None
    return Odds(
        probability=found.probability,
        saving=found.saving,
        worst_case=found.worst_case,
        present_regret=found.present_regret,
        regret=found.regret,
        assumes=wording.assumes(so_far, case.evidence),
    )


def _otherwise(case: _Case) -> tuple[AtPreference, ...]:
    """The batch of readers to whom money or time matters more, where nobody has said what a step is worth."""
    if case.priced is None or case.found is None or case.found.batch is None or not is_assumed(case.asked):
        return ()
    if case.found.choice.binding:
        return ()
    whole = rounding(case.found, case.asked, case.priced)
    return tuple(
        AtPreference(value, whole(least_expected_cost(case.priced.belief, prices.from_preference(value))), text)
        for value, text in OTHERWISE
    )
