"""The critical batch of a run and the best batch at the reader's price, with their errors.

B_crit = κ B_simple, and the best batch is √(r B_crit), r = examples one would spend to save a step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.6 at a constant batch). The statistical error of the noise scale and
the spread of κ add on the log scale.
"""

from dataclasses import dataclass

from noisescale_core.advice.kappa import Kappa
from noisescale_core.advice.parts import Interval, Preference
from noisescale_core.advice.worth import balanced_at
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory import intervals, prices
from noisescale_core.theory.intervals import Estimate, estimate_from_interval
from noisescale_core.theory.prices import ExchangeRate

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
        rate: What a step is worth, with the words that it was said in.
        exchange_rate: r at the estimated B_crit, examples per step.
    """

    critical: Estimate
    critical_batch: Interval
    best: Interval
    best_statistical: Interval
    rate: ExchangeRate
    exchange_rate: float


def price(
    noise_scale: NoiseScaleEstimate, wish: Preference, kappa: Kappa, worth: ExchangeRate | None = None
) -> Priced | None:
    """B_crit and the best batch with intervals; None without a noise scale, or where an end leaves float64.

    Args:
        noise_scale: Of the latest window, in examples.
        wish: What the reader values, by a preference or in examples.
        kappa: What is known of B_crit / B_simple.
        worth: The same as a price, where the run's devices had a say in it.

    Raises:
        DomainError: If the preference or the exchange rate is out of range.
    """
    rate = worth or _rate_of(wish)
    value, high = noise_scale.value, noise_scale.high
    if value is None or high is None or not 1 / LARGEST_BATCH < value * kappa.value < LARGEST_BATCH:
        return None
    measured = estimate_from_interval(
        value, low=noise_scale.low, high=high, model_log_sd=kappa.log_sd, level=noise_scale.level
    )
    critical = measured.to_power(1, factor=kappa.value)
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


def _rate_of(wish: Preference) -> ExchangeRate | None:
    if wish.examples_per_step is not None:
        return prices.worth_examples(wish.examples_per_step)
    return None if wish.preference is None else prices.from_preference(wish.preference)
