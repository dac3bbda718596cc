"""Which batch size to use now, why, how sure, and what it would change: from the latest noise scale.

B_crit = κ B_simple, and the interval carries the spread of κ: that over published tasks where nothing has calibrated
the run's own. The recommended batch is √(r B_crit), r = examples one would spend to save a step.
"""

import math
from typing import Literal

from noisescale.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale.theory import learning_rate, prices, trade_off
from noisescale.theory.advice import wording
from noisescale.theory.advice.kappa import UNCALIBRATED, Kappa
from noisescale.theory.advice.parts import (
    Calibration,
    Decision,
    DecisionWord,
    ExchangeRate,
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    Preference,
    Recommendation,
    RunSoFar,
    Share,
)
from noisescale.theory.advice.pricing import Priced, price
from noisescale.theory.advice.waste import waste
from noisescale.theory.efficiency import example_efficiency, step_efficiency

BALANCED = 0.5
"""The preference that nothing stated stands for."""

KEEP_REGRET = 0.125
"""A batch within 2 × of the best one costs at most this much more."""


def decide(run: RunSoFar, wish: Preference, kappa: Kappa = UNCALIBRATED) -> Decision:
    """The decision for a run, for a table row.

    Args:
        run: As it stands.
        wish: What the reader values.
        kappa: What is known of B_crit / B_simple.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    return _decided(run, price(run.noise_scale, wish, kappa), kappa)


def recommend(run: RunSoFar, wish: Preference, kappa: Kappa = UNCALIBRATED) -> Recommendation:
    """The whole recommendation for a run.

    Args:
        run: As it stands.
        wish: What the reader values.
        kappa: What is known of B_crit / B_simple.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    priced = price(run.noise_scale, wish, kappa)
    decision = _decided(run, priced, kappa)
    if priced is None or run.batch_size is None or decision.batch_size is None:
        return _nothing_to_say(run, wish, kappa, decision)
    to_batch = decision.batch_size
    predicted = _predicted(run.batch_size, to_batch, priced.critical_batch)
    return Recommendation(
        decision=decision.decision,
        headline=wording.headline(decision.decision, to_batch, run, priced.best.value, kappa),
        reason=decision.reason,
        effect=wording.effect(decision.decision, predicted, run),
        current_batch_size=run.batch_size,
        recommended_batch_size=to_batch,
        interval=priced.best,
        statistical_interval=priced.best_statistical,
        calibration=calibration(kappa, run.noise_scale.level),
        exchange_rate=ExchangeRate(priced.exchange_rate, _source(wish), priced.said),
        preference=_preference(wish),
        critical_batch=priced.critical_batch,
        learning_rate=_learning_rate(run, to_batch),
        example_efficiency=_now_and_then(example_efficiency, run, to_batch),
        step_efficiency=_now_and_then(step_efficiency, run, to_batch),
        predicted=predicted,
        waste=waste(run.spent, run.usd_spent),
        warnings=wording.warnings(run, wish, kappa),
        next_step=wording.next_step(decision.decision, run, kappa),
    )


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


def _decided(run: RunSoFar, priced: Priced | None, kappa: Kappa) -> Decision:
    if priced is None or run.batch_size is None:
        return Decision("insufficient_evidence", None, None, None, wording.missing(run))
    word, best = _word(run.noise_scale, run.batch_size, priced.best), priced.best
    return Decision(word, round_batch(best.value), best.low, best.high, wording.because(run, word, best, kappa))


def _source(wish: Preference) -> Literal["preference", "examples_per_step"]:
    return "preference" if wish.examples_per_step is None else "examples_per_step"


def _preference(wish: Preference) -> float | None:
    if wish.examples_per_step is not None:
        return None
    return BALANCED if wish.preference is None else wish.preference


def _word(noise_scale: NoiseScaleEstimate, batch_size: float, best: Interval) -> DecisionWord:
    if noise_scale.state is not State.RESOLVED:
        return "insufficient_evidence"
    if best.low > batch_size:
        return "increase"
    if best.high < batch_size:
        return "decrease"
    ends = (trade_off.regret(batch=batch_size, best=end) for end in (best.low, best.high) if end > 0)
    return "keep" if best.low > 0 and max(ends) <= KEEP_REGRET else "insufficient_evidence"


def round_batch(batch: float) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, … on the log scale: at most 1 % worse than the exact best."""
    exponent = math.floor(math.log2(max(batch, 1)))
    candidates = [2**exponent, 3 * 2 ** (exponent - 1), 2 ** (exponent + 1)]
    return min((int(c) for c in candidates if c == int(c)), key=lambda c: abs(math.log(c / max(batch, 1))))


def _predicted(from_batch: float, to_batch: float, critical: Interval) -> Predicted:
    def over(factor: Literal["steps", "examples"]) -> Interval:
        function = trade_off.steps_factor if factor == "steps" else trade_off.examples_factor
        value, *ends = (
            function(from_batch=from_batch, to_batch=to_batch, critical_batch=b)
            for b in (critical.value, critical.low, critical.high)
        )
        return Interval(value, min(ends), max(ends))

    return Predicted(steps_factor=over("steps"), examples_factor=over("examples"))


def _now_and_then(share: Share, run: RunSoFar, to_batch: float) -> NowAndThen | None:
    if run.batch_size is None:
        return None
    now, then = share_interval(share, run.noise_scale, run.batch_size), share_interval(share, run.noise_scale, to_batch)
    return NowAndThen(now, then) if now and then else None


def share_interval(share: Share, noise_scale: NoiseScaleEstimate, batch_size: float) -> Interval | None:
    """An efficiency at a batch size with its statistical interval; None while the noise scale has no value."""
    if noise_scale.value is None or noise_scale.high is None:
        return None
    ends = (share(noise_scale.low or 0.0, batch_size), share(noise_scale.high, batch_size))
    return Interval(share(noise_scale.value, batch_size), min(ends), max(ends))


def _learning_rate(run: RunSoFar, to_batch: float) -> LearningRateAdvice | None:
    scale = run.noise_scale
    if run.learning_rate is None or run.batch_size is None or scale.value is None or scale.high is None:
        return None
    rules = [
        learning_rate.rescale(optimizer=run.optimizer, from_batch=run.batch_size, to_batch=to_batch, noise_scale=phi)
        for phi in (scale.value, scale.low or 0.0, scale.high)
    ]
    center, *ends = (run.learning_rate * rule.factor for rule in rules)
    return LearningRateAdvice(
        current=run.learning_rate,
        recommended=center,
        low=min(ends),
        high=max(ends),
        rule=rules[0].name,
        candidates=(center / 2, center, 2 * center),
        text=wording.learning_rate_text(run.optimizer, rules[0]),
    )


def _nothing_to_say(run: RunSoFar, wish: Preference, kappa: Kappa, decision: Decision) -> Recommendation:
    rate = wish.examples_per_step
    return Recommendation(
        decision=decision.decision,
        headline=wording.headline_without_value(run),
        reason=decision.reason,
        effect=wording.bound_hint(run),
        current_batch_size=run.batch_size,
        recommended_batch_size=None,
        interval=None,
        statistical_interval=None,
        calibration=calibration(kappa, run.noise_scale.level),
        exchange_rate=None if rate is None else ExchangeRate(rate, _source(wish), prices.worth_examples(rate).said),
        preference=_preference(wish),
        critical_batch=None,
        learning_rate=None,
        example_efficiency=None,
        step_efficiency=None,
        predicted=None,
        waste=waste(run.spent, run.usd_spent),
        warnings=wording.warnings(run, wish, kappa),
        next_step=wording.next_step(decision.decision, run, kappa),
    )
