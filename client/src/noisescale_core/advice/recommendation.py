"""Which batch size to use now, why, how sure, and what it would change: from the latest noise scale.

B_crit = κ B_simple, and the interval carries the spread of κ: that over published tasks where nothing has calibrated
the run's own. The recommended batch is √(r B_crit), r = examples one would spend to save a step, moved into what the
reader has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale_core.advice import effects, verdict, wording
from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.bounds import missing_for
from noisescale_core.advice.cautions import cautions
from noisescale_core.advice.decision import word_of
from noisescale_core.advice.hyperparameters import rescaling
from noisescale_core.advice.kappa import UNCALIBRATED, Kappa
from noisescale_core.advice.limited import Inside, inside, round_batch
from noisescale_core.advice.pace import Pace, pace_of
from noisescale_core.advice.parts import (
    Calibration,
    Constraints,
    Decision,
    ExchangeRate,
    Interval,
    Predicted,
    Preference,
    RateSource,
    RunSoFar,
)
from noisescale_core.advice.plan import LARGEST, SMALLEST, plan
from noisescale_core.advice.predictions import Predictions, had_we_used, parallelism_of, predictions
from noisescale_core.advice.pricing import Priced, price
from noisescale_core.advice.surer import Surer, surer
from noisescale_core.advice.verdict import Verdict
from noisescale_core.advice.waste import waste
from noisescale_core.advice.worth import SPLIT, Missing, worth_of
from noisescale_core.theory.efficiency import example_efficiency, step_efficiency

NOTHING_LIMITS = Constraints()

NOT_IN_A_LIST = "A list of runs holds no schedules: ask for the recommendation of this run alone."

FAR_OFF = Missing(
    "A noise scale or batch so far from any run's plans nothing: look at the measurement.",
    "Check the gradients: a noise scale like this comes of vanished ones.",
)


@dataclass(frozen=True, slots=True)
class _Case:
    """What was asked, and what is known so far."""

    run: RunSoFar
    wish: Preference
    kappa: Kappa
    given: Constraints
    batches: tuple[float, ...]
    pace: Pace | None
    is_of_list: bool
    priced: Priced | None = None
    found: Inside | None = None
    missing: Missing | None = None


def decide(run: RunSoFar, wish: Preference, kappa: Kappa = UNCALIBRATED) -> Decision:
    """The decision for a run, for a table row.

    Args:
        run: As it stands.
        wish: What the reader values.
        kappa: What is known of B_crit / B_simple.

    Raises:
        DomainError: If the preference or the exchange rate is out of range.
    """
    worth = worth_of(wish, run)
    priced = None if isinstance(worth, Missing) else price(run.noise_scale, wish, kappa, worth)
    if priced is None or run.batch_size is None or not _is_plausible(run, priced):
        why = worth.text if isinstance(worth, Missing) else wording.missing(run)
        return Decision("insufficient_evidence", None, None, None, why)
    word, best = word_of(run, priced.best), priced.best
    return Decision(word, round_batch(best.value), best.low, best.high, wording.because(run, word, best, kappa))


def recommend(
    run: RunSoFar,
    wish: Preference,
    kappa: Kappa = UNCALIBRATED,
    given: Constraints = NOTHING_LIMITS,
    batches: Sequence[float] = (),
    *,
    is_of_list: bool = False,
) -> Recommendation:
    """The recommendation for a run.

    Args:
        run: As it stands.
        wish: What the reader values.
        kappa: What is known of B_crit / B_simple.
        given: What limits the rest of the run.
        batches: Batches to predict besides the present and the recommended one, in examples.
        is_of_list: Without what takes half of the time and no list shows: schedule, waste, counterfactual,
            parallelism and what else to set.

    Raises:
        DomainError: If the preference, the exchange rate or a limit is out of range.
    """
    worth, pace = worth_of(wish, run, spot_price_share=given.spot_price_share), pace_of(run, wish, given)
    case = _Case(run, wish, kappa, given, tuple(batches), pace, is_of_list)
    if isinstance(worth, Missing):
        return _answer(replace(case, missing=worth))
    priced = price(run.noise_scale, wish, kappa, worth)
    if priced is None or run.batch_size is None:
        return _answer(case)
    missing = missing_for(run, given, pace) or (None if _is_plausible(run, priced) else FAR_OFF)
    found = inside(priced, run, given, pace) if missing is None else None
    return _answer(replace(case, priced=priced, found=found, missing=missing))


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


def _is_plausible(run: RunSoFar, priced: Priced) -> bool:
    sizes = (priced.critical.value, run.batch_size or 0.0, priced.best.value, priced.exchange_rate)
    return all(SMALLEST < size < LARGEST for size in sizes)


def _answer(case: _Case) -> Recommendation:
    """The answer with what is known: without a price or a batch most of it is None."""
    run, priced, found = case.run, case.priced, case.found
    to_batch = None if found is None else found.batch
    whole = None if found is None else priced
    foretold = _foretold(case)
    options = surer(run, case.kappa, whole, case.pace)
    factors = _factors(case)
    said = _verdict(case, factors, foretold, options)
    answer = Recommendation(
        decision=said.decision,
        headline=said.headline,
        reason=said.reason,
        effect=said.effect,
        current_batch_size=run.batch_size,
        recommended_batch_size=to_batch,
        rounding_regret=None if found is None else found.regret,
        interval=None if priced is None else priced.best,
        statistical_interval=None if priced is None else priced.best_statistical,
        calibration=calibration(case.kappa, run.noise_scale.level),
        exchange_rate=_exchange_rate(case.wish, priced),
        preference=case.wish.preference if case.wish.is_stated else SPLIT,
        critical_batch=None if priced is None else priced.critical_batch,
        learning_rate=None if to_batch is None else effects.learning_rate_advice(run, to_batch),
        example_efficiency=None if to_batch is None else effects.now_and_then(example_efficiency, run, to_batch),
        step_efficiency=None if to_batch is None else effects.now_and_then(step_efficiency, run, to_batch),
        predicted=factors,
        waste=None,
        warnings=(*wording.warnings(run, case.wish, case.kappa), *cautions(run, case.given, found, foretold)),
        next_step=said.next_step,
        next_steps=options,
        limited=None if found is None else found.limited,
        predictions=foretold,
        counterfactual=None,
        parallelism=None,
        rescaling=None,
        schedule=None,
        schedule_missing=NOT_IN_A_LIST,
    )
    return answer if case.is_of_list else _with_the_rest(answer, case, whole)


def _with_the_rest(answer: Recommendation, case: _Case, whole: Priced | None) -> Recommendation:
    """The answer with what only the run's own page shows."""
    run, to_batch = case.run, answer.recommended_batch_size
    not_judged = None if case.missing is None else case.missing.text
    rest = plan(run, case.given, priced=case.priced, found=case.found, not_judged=not_judged)
    set_with = rescaling(run, run.config, to_batch)
    return replace(
        answer,
        waste=waste(run.spent, run.usd_spent),
        counterfactual=None if to_batch is None else had_we_used(run, batch=to_batch),
        parallelism=None if whole is None else parallelism_of(run, whole, case.given.examples_per_device),
        rescaling=None if set_with is None else set_with.changes,
        schedule=rest.schedule,
        schedule_missing=rest.missing,
    )


def _foretold(case: _Case) -> Predictions | None:
    if case.priced is None or case.found is None:
        return None
    # where no batch meets the limits, what the price alone would take is what is possible
    best = () if case.found.batch is not None else (float(round_batch(case.priced.best.value)),)
    return predictions(case.run, case.priced, case.pace, recommended=case.found.batch, asked=(*case.batches, *best))


def _factors(case: _Case) -> Predicted | None:
    if case.priced is None or case.found is None or case.found.batch is None or case.run.batch_size is None:
        return None
    return effects.predicted_factors(case.run.batch_size, case.found.batch, case.priced.critical_batch)


def _verdict(case: _Case, factors: Predicted | None, foretold: Predictions | None, options: Sequence[Surer]) -> Verdict:
    if case.priced is None or case.found is None:
        return verdict.without_value(case.run, case.kappa, case.missing, options)
    if factors is None:
        return verdict.infeasible(case.run, case.kappa, case.priced, case.found, foretold)
    return verdict.verdict(case.run, case.kappa, case.priced, case.found, factors, foretold, options)


def _exchange_rate(wish: Preference, priced: Priced | None) -> ExchangeRate | None:
    source: RateSource = wish.ways[0] if wish.is_stated else "preference"  # type: ignore[assignment]  # names of fields
    if priced is not None:
        return ExchangeRate(priced.exchange_rate, source, priced.rate.said)
    said = wish.examples_per_step
    return None if said is None else ExchangeRate(said, source, f"a step saved is worth {said:g} examples")
