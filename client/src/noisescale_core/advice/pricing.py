"""The critical batch of a run and the best batch at the reader's price, with their errors.

B_crit = κ B_simple, and the best batch is √(r B_crit), r = examples one would spend to save a step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.6 at a constant batch).
"""

from dataclasses import dataclass

from noisescale_core.advice.evidence import LARGEST_BATCH
from noisescale_core.advice.parts import Interval
from noisescale_core.advice.question import Worth
from noisescale_core.advice.worth import balanced_at
from noisescale_core.theory import intervals, prices
from noisescale_core.theory.intervals import Estimate
from noisescale_core.theory.prices import ExchangeRate


@dataclass(frozen=True, slots=True)
class Priced:
    """The best batch at the reader's price.

    Attributes:
        critical: B_crit in examples, with both of its errors.
        critical_batch: The same as an interval.
        best: Best batch in examples, by both errors.
        best_statistical: By the measurement's error alone.
        rate: What a step is worth, with the words that it was said in.
        exchange_rate: r at the estimated B_crit, examples per step.
    """

    critical: Estimate
    critical_batch: Interval
    best: Interval
    best_statistical: Interval
    rate: ExchangeRate
    exchange_rate: float


def price(critical: Estimate | None, wish: Worth, worth: ExchangeRate | None = None) -> Priced | None:
    """B_crit and the best batch with intervals; None without a B_crit, or where an end leaves float64.

    Args:
        critical: B_crit in examples, with both of its errors; None where it is not known.
        wish: What the reader values, by a preference or in examples.
        worth: The same as a price, where the run's devices had a say in it.

    Raises:
        DomainError: If the preference or the exchange rate is out of range.
    """
    rate = worth or _rate_of(wish)
    if critical is None:
        return None
    rate = rate or balanced_at(critical.value)
    best, at_rate = rate.recommended_batch(critical), rate.at(critical.value)
    found = Priced(
        critical=critical,
        critical_batch=interval_of(critical.interval),
        best=interval_of(best.interval),
        best_statistical=interval_of(best.through(lambda batch: batch).statistical),
        rate=rate,
        exchange_rate=at_rate,
    )
    ends = (found.critical_batch.high, found.best.high, at_rate)
    return found if all(0 < end < LARGEST_BATCH for end in ends) else None


def interval_of(found: intervals.Interval) -> Interval:
    """The interval as a part of an advice.

    Args:
        found: As the theory carries it.
    """
    return Interval(found.value, found.low, found.high, found.level)


def _rate_of(wish: Worth) -> ExchangeRate | None:
    if wish.examples_per_step is not None:
        return prices.worth_examples(wish.examples_per_step)
    return None if wish.preference is None else prices.from_preference(wish.preference)
