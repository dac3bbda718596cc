"""Which batch size to use now, why, how sure, and what it would change: pure, from the latest noise scale.

First version, for a run that no sweep has calibrated: B_crit = κ B_simple with κ = 1 assumed, and the interval carries
the spread of κ over published tasks. The recommended batch is √(r B_crit), r = examples one would spend to save a step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from noisescale.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale.theory import learning_rate, trade_off
from noisescale.theory.efficiency import example_efficiency, step_efficiency
from noisescale_server.services import wording
from noisescale_server.services.advice import (
    Decision,
    DecisionWord,
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    Preference,
    Recommendation,
    RunSoFar,
    Share,
    SpentPoint,
    Waste,
)

KAPPA_LOG10_SD = 0.87
"""Standard deviation of log₁₀ κ, κ = B_crit / B_simple, over the run averages of Table 1.

Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1; computed from its rows."""

LARGEST_BATCH = 1e300
"""Beyond it the ends of the interval leave float64; only vanished gradients get there."""

KEEP_REGRET = 0.125
"""A batch within 2 × of the best one costs at most this much more."""


@dataclass(frozen=True, slots=True)
class _Priced:
    """The best batch at the reader's price: all four in examples."""

    critical_batch: Interval
    best: Interval
    best_statistical: Interval
    exchange_rate: float


def decide(run: RunSoFar, wish: Preference) -> Decision:
    """The decision for a run, for a table row.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    priced = price(run.noise_scale, wish)
    if priced is None or run.batch_size is None:
        return Decision("insufficient_evidence", None, None, None, wording.missing(run))
    word = _word(run.noise_scale, run.batch_size, priced.best)
    best = priced.best
    return Decision(word, round_batch(best.value), best.low, best.high, wording.because(run, word, best))


def recommend(run: RunSoFar, wish: Preference) -> Recommendation:
    """The whole recommendation for a run.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    priced = price(run.noise_scale, wish)
    decision = decide(run, wish)
    if priced is None or run.batch_size is None or decision.batch_size is None:
        return _nothing_to_say(run, wish, decision)
    to_batch = decision.batch_size
    predicted = _predicted(run.batch_size, to_batch, priced.critical_batch)
    return Recommendation(
        decision=decision.decision,
        headline=wording.headline(decision.decision, to_batch, run, priced.best.value),
        reason=decision.reason,
        effect=wording.effect(decision.decision, predicted, run),
        current_batch_size=run.batch_size,
        recommended_batch_size=to_batch,
        interval=priced.best,
        statistical_interval=priced.best_statistical,
        exchange_rate=priced.exchange_rate,
        preference=None if wish.examples_per_step else wish.preference,
        critical_batch=priced.critical_batch,
        learning_rate=_learning_rate(run, to_batch),
        example_efficiency=_now_and_then(example_efficiency, run, to_batch),
        step_efficiency=_now_and_then(step_efficiency, run, to_batch),
        predicted=predicted,
        waste=waste(run.spent, run.usd_spent),
        warnings=wording.warnings(run, wish),
        next_step=wording.next_step(decision.decision, run),
    )


def price(noise_scale: NoiseScaleEstimate, wish: Preference) -> _Priced | None:
    """B_crit and the best batch at the reader's price, with intervals; None without a noise scale, or beyond float64.

    Statistical and model error add on the log scale; the best batch √(r B_crit) has half the log error of B_crit.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    if wish.examples_per_step is not None and not 0 < wish.examples_per_step < math.inf:
        raise ValueError(f"examples_per_step must be positive, got {wish.examples_per_step:g}")
    value, low, high = noise_scale.value, noise_scale.low, noise_scale.high
    if value is None or high is None:
        return None
    rate = wish.examples_per_step or trade_off.exchange_rate(preference=wish.preference, critical_batch=value)
    best = trade_off.best_batch(critical_batch=value, examples_per_step=rate)
    if best > LARGEST_BATCH:
        return None
    model = NormalDist().inv_cdf(0.5 + noise_scale.level / 2) * KAPPA_LOG10_SD * math.log(10)
    down = math.hypot(math.log(value / low), model) if low else math.inf
    up = math.hypot(math.log(high / value), model)
    return _Priced(
        critical_batch=Interval(value, value * math.exp(-down), value * math.exp(up)),
        best=Interval(best, best * math.exp(-down / 2), best * math.exp(up / 2)),
        best_statistical=Interval(best, best * math.sqrt((low or 0.0) / value), best * math.sqrt(high / value)),
        exchange_rate=rate,
    )


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


def waste(spent: Sequence[SpentPoint], usd_spent: float | None) -> Waste | None:
    """Examples so far that smaller batches would not have needed; None where no stretch has a bounded noise scale.

    Source: an ideal step costs B + φ examples at batch B, φ of them unavoidable (McCandlish et al. 2018, appendix D.1).
    """
    all_examples = sum(point.examples for point in spent)
    known = [
        (p.examples, p.batch_size, p.value, p.low or 0.0, p.high)
        for p in spent
        if p.batch_size is not None and p.value is not None and p.high is not None
    ]
    covered = sum(examples for examples, *_ in known)
    if covered <= 0:
        return None
    value = sum(e * step_efficiency(phi, b) for e, b, phi, _, _ in known)
    least = sum(e * step_efficiency(high, b) for e, b, _, _, high in known)
    most = sum(e * step_efficiency(low, b) for e, b, _, low, _ in known)
    fraction = Interval(value / covered, least / covered, most / covered)
    usd = (
        None if usd_spent is None else Interval(*(usd_spent * f for f in (fraction.value, fraction.low, fraction.high)))
    )
    return Waste(Interval(value, least, most), fraction, covered / all_examples, usd)


def _nothing_to_say(run: RunSoFar, wish: Preference, decision: Decision) -> Recommendation:
    return Recommendation(
        decision=decision.decision,
        headline=wording.headline_without_value(run),
        reason=decision.reason,
        effect=wording.bound_hint(run),
        current_batch_size=run.batch_size,
        recommended_batch_size=None,
        interval=None,
        statistical_interval=None,
        exchange_rate=wish.examples_per_step,
        preference=None if wish.examples_per_step else wish.preference,
        critical_batch=None,
        learning_rate=None,
        example_efficiency=None,
        step_efficiency=None,
        predicted=None,
        waste=waste(run.spent, run.usd_spent),
        warnings=wording.warnings(run, wish),
        next_step=wording.next_step(decision.decision, run),
    )
