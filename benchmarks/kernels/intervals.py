"""Intervals of what is timed again and again: of a median by order statistics, of a mean ratio by Student's t."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

LEVEL = 0.95

FEWEST = 6
"""Samples below which the range of all of them covers the median with less than 95 %: 1 - 2 · 2⁻⁶ = 0.97."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and between what it lies with 95 %.

    Attributes:
        value: The number.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def median_interval(samples: Sequence[float]) -> Interval:
    """The median, between the order statistics that hold it whatever the distribution (David and Nagaraja 2003, §7.1).

    Raises:
        ValueError: For fewer samples than can hold a median with 95 %.
    """
    if len(samples) < FEWEST:
        raise ValueError(f"samples must be at least {FEWEST}, got {len(samples)}: measure more rounds")
    ordered = sorted(samples)
    cut = int(stats.binom.ppf((1 - LEVEL) / 2, len(ordered), 0.5))
    below = stats.binom.cdf(cut - 1, len(ordered), 0.5)
    cut = cut if cut > 0 and below <= (1 - LEVEL) / 2 else 1
    return Interval(statistics.median(ordered), ordered[cut - 1], ordered[-cut])


def ratio_interval(ratios: Sequence[float]) -> Interval:
    """The geometric mean of paired ratios, with Student's t on their logarithms.

    Raises:
        ValueError: For fewer than two ratios, or one that is not above 0.
    """
    if len(ratios) < 2 or min(ratios) <= 0:  # a spread needs two
        raise ValueError(f"ratios must be at least 2 numbers above 0, got {list(ratios)}")
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    reach = stats.t.ppf((1 + LEVEL) / 2, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))
