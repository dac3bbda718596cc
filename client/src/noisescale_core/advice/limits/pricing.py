"""The critical batch of a run and the best batch at the reader's price, with their errors.

The best batch is that of least expected cost (`theory/expected_cost.py`); its interval is that of √(r B_crit), r =
examples one would spend to save a step (McCandlish et al. 2018, arXiv:1812.06162, eq. D.6 at a constant batch).
"""

from dataclasses import dataclass

from noisescale_core.advice.evidence.critical_belief import LARGEST, SMALLEST, Critical
from noisescale_core.advice.parts.parts import Interval
from noisescale_core.estimators.belief import Belief
from noisescale_core.theory import intervals
from noisescale_core.theory.expected_cost import least_expected_cost
from noisescale_core.theory.intervals import Estimate
from noisescale_core.theory.prices import ExchangeRate


@dataclass(frozen=True, slots=True)
class Priced:
    """The best batch at the reader's price.

    Attributes:
        critical: B_crit in examples, with both of its errors.
        critical_batch: The same as an interval.
        belief: How likely each B_crit is.
        best: Best batch in examples: of least expected cost, with the interval of the best one by both errors.
        best_statistical: The same by the measurement's error alone.
        rate: What a step is worth, with the words that it was said in.
        exchange_rate: r at the estimated B_crit, examples per step.
    """

    critical: Estimate
    critical_batch: Interval
    belief: Belief
    best: Interval
    best_statistical: Interval
    rate: ExchangeRate
    exchange_rate: float

    @property
    def rate_of_best(self) -> float:
        """The r at which the best batch would be √(r B_crit), were B_crit known to be its estimate."""
        return self.best.value * (self.best.value / self.critical.value)


def price(critical: Critical | None, rate: ExchangeRate) -> Priced | None:
    """B_crit and the best batch with intervals; None without a B_crit, or where one is no run's.

    Args:
        critical: B_crit in examples, with both of its errors; None where it is not known.
        rate: What a step is worth.
    """
    if critical is None:
        return None
    found = priced(critical, rate)
    sizes = (found.critical_batch.high, found.best.high, found.best.value, found.exchange_rate)
    return found if all(SMALLEST < size < LARGEST for size in sizes) else None


def priced(critical: Critical, rate: ExchangeRate) -> Priced:
    """The best batch with its intervals, however far from any run's.

    Args:
        critical: B_crit in examples, with both of its errors.
        rate: What a step is worth.
    """
    estimate = critical.estimate
    value, spread = max(critical.floor, least_expected_cost(critical.belief, rate)), rate.recommended_batch(estimate)
    return Priced(
        critical=estimate,
        critical_batch=interval_of(estimate.interval),
        belief=critical.belief,
        best=_around(value, interval_of(spread.interval)),
        best_statistical=_around(value, interval_of(spread.through(lambda batch: batch).statistical)),
        rate=rate,
        exchange_rate=rate.at(estimate.value),
    )


def interval_of(found: intervals.Interval) -> Interval:
    """The interval as a part of an advice.

    Args:
        found: As the theory carries it.
    """
    return Interval(found.value, found.low, found.high, found.level)


def _around(value: float, found: Interval) -> Interval:
    """The interval with another value, which may lie off its middle."""
    return Interval(value, min(found.low, value), max(found.high, value), found.level)
