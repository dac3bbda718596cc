"""The critical batch of a run and the best batch at the reader's price, with their errors.

B_crit = κ B_simple, and the best batch is √(r B_crit), r = examples one would spend to save a step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.6 at a constant batch). The statistical error of the noise scale and
the spread of κ add on the log scale.
"""

from dataclasses import dataclass

from noisescale.estimators.uncertainty import NoiseScaleEstimate
from noisescale.theory import intervals, prices
from noisescale.theory.advice.kappa import Kappa
from noisescale.theory.advice.parts import Interval, Preference
from noisescale.theory.intervals import Estimate, estimate_from_interval
from noisescale.theory.prices import ExchangeRate

LARGEST_BATCH = 1e300
"""Beyond it the ends of the interval leave float64; only vanished gradients get there."""


@dataclass(frozen=True, slots=True)
class Priced:
    """The best batch at the reader's price.

    Attributes:
        critical: B_crit in examples, with both of its errors.
        critical_batch: The same as an interval.
        best: Best batch in examples, by both errors.
        best_statistical: By the measurement's error alone.
        exchange_rate: r at the estimated B_crit, examples per step.
        said: Where r comes from, as a sentence.
    """

    critical: Estimate
    critical_batch: Interval
    best: Interval
    best_statistical: Interval
    exchange_rate: float
    said: str


def rate_of(wish: Preference, critical_batch: float) -> ExchangeRate:
    """What the reader said a step is worth.

    Nothing said is the balanced price at the B_crit of now, as a number: the answer holds at this price, see decision
    0002.

    Args:
        wish: The reader's words.
        critical_batch: B_crit in examples.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    if wish.examples_per_step is not None:
        return prices.worth_examples(wish.examples_per_step)
    if wish.preference is not None:
        return prices.from_preference(wish.preference)
    return ExchangeRate("nobody has said what a step is worth: steps and examples balanced", critical_batch)


def price(noise_scale: NoiseScaleEstimate, wish: Preference, kappa: Kappa) -> Priced | None:
    """B_crit and the best batch with intervals; None without a noise scale, or where an end leaves float64.

    Args:
        noise_scale: Of the latest window, in examples.
        wish: What the reader values.
        kappa: What is known of B_crit / B_simple.

    Raises:
        ValueError: If the preference or the exchange rate is out of range.
    """
    value, high = noise_scale.value, noise_scale.high
    # what was said is checked even where nothing can be answered
    rate = rate_of(wish, 1.0 if value is None else max(value, 1 / LARGEST_BATCH))
    if value is None or high is None:
        return None
    measured = estimate_from_interval(
        value, low=noise_scale.low, high=high, model_log_sd=kappa.log_sd, level=noise_scale.level
    )
    if not 1 / LARGEST_BATCH < value * kappa.value < LARGEST_BATCH:
        return None
    critical = measured.to_power(1, factor=kappa.value)
    if not wish.is_stated:
        rate = rate_of(wish, critical.value)
    best, at_rate = rate.recommended_batch(critical), rate.at(critical.value)
    found = Priced(
        critical=critical,
        critical_batch=interval_of(critical.interval),
        best=interval_of(best.interval),
        best_statistical=interval_of(best.through(lambda batch: batch).statistical),
        exchange_rate=at_rate,
        said=rate.said,
    )
    ends = (found.critical_batch.high, found.best.high, at_rate)
    return found if all(0 < end < LARGEST_BATCH for end in ends) else None


def interval_of(found: intervals.Interval) -> Interval:
    """The interval as a part of an advice.

    Args:
        found: As the theory carries it.
    """
    return Interval(found.value, found.low, found.high, found.level)
