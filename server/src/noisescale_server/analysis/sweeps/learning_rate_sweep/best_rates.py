"""The best learning rate at each batch size, as exactly as its grid and its noise allow.

A grid tells that the best rate lies nearer to this point than to its neighbours, no more; where neighbours are as good
within the scatter of their seeds, not even that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.sweeps.steps_to_target.seed_average import SeedAverage, seed_average
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, by_batch_size

AS_GOOD = 2.0
"""Rates whose mean log S is within so many standard errors of the best one's are as good."""

FEWEST_RATES = 2


@dataclass(frozen=True, slots=True)
class BestRate:
    """The best learning rate at a batch size.

    Attributes:
        batch_size: In examples.
        lr: The rate that reached the target first; the geometric middle of those that are as good.
        low: Half way to the next smaller rate tried, on the log scale; None where there is none.
        high: Half way to the next larger one; None where there is none.
        steps: Steps to the target at the rate that was first.
        num_rates: Rates that were tried, divergences included.
        num_as_good: Rates that are as good, the best included.
        is_at_grid_edge: The best is the smallest or largest tried, so that a better one may lie beyond.
    """

    batch_size: float
    lr: float
    low: float | None
    high: float | None
    steps: float
    num_rates: int
    num_as_good: int
    is_at_grid_edge: bool

    @property
    def log_standard_error(self) -> float | None:
        """Of log lr, uniform between the ends; None where an end is open."""
        if self.low is None or self.high is None:
            return None
        return (math.log(self.high) - math.log(self.low)) / math.sqrt(12)


def best_rates(settings: Sequence[Setting], target: float) -> tuple[BestRate, ...]:
    """At each batch size that reached the target and where several rates were tried.

    Args:
        settings: In the order of `settings_of`.
        target: Value of the metric.
    """
    found = []
    for batch_size, here in by_batch_size(settings):
        averages = {setting.lr: seed_average(setting.curves, target) for setting in here if setting.curves}
        reached = {lr: one for lr, one in averages.items() if one.steps.steps is not None}
        tried = sorted(setting.lr for setting in here)
        if reached and len(tried) >= FEWEST_RATES:
            found.append(_best(batch_size, tried, reached))
    return tuple(found)


def _best(batch_size: float, tried: Sequence[float], reached: dict[float, SeedAverage]) -> BestRate:
    best = min(reached, key=lambda rate: reached[rate].rank)
    as_good = _as_good(tried, reached, best)
    first, last = tried.index(as_good[0]), tried.index(as_good[-1])
    steps = reached[best].steps.steps
    assert steps is not None, "rates that did not reach the target are left out"
    return BestRate(
        batch_size=batch_size,
        lr=math.sqrt(as_good[0]) * math.sqrt(as_good[-1]),
        low=math.sqrt(tried[first - 1]) * math.sqrt(tried[first]) if first > 0 else None,
        high=math.sqrt(tried[last]) * math.sqrt(tried[last + 1]) if last + 1 < len(tried) else None,
        steps=steps,
        num_rates=len(tried),
        num_as_good=len(as_good),
        is_at_grid_edge=best in (tried[0], tried[-1]),
    )


def _as_good(tried: Sequence[float], reached: dict[float, SeedAverage], best: float) -> list[float]:
    """The best rate and its neighbours without a gap, as far as noise hides which of them is better."""
    place = tried.index(best)
    first = last = place
    while first > 0 and _is_as_good(reached.get(tried[first - 1]), reached[best]):
        first -= 1
    while last + 1 < len(tried) and _is_as_good(reached.get(tried[last + 1]), reached[best]):
        last += 1
    return list(tried[first : last + 1])


def _is_as_good(other: SeedAverage | None, best: SeedAverage) -> bool:
    if other is None or other.steps.steps is None or best.steps.steps is None:
        return False
    variances = [_variance_of_mean(one) for one in (other, best)]
    known = [one for one in variances if one is not None]
    if len(known) < len(variances):
        return False
    return math.log(other.steps.steps / best.steps.steps) <= AS_GOOD * math.sqrt(math.fsum(known))


def _variance_of_mean(average: SeedAverage) -> float | None:
    repeats = average.repeats
    if repeats is None or repeats.count < 2:
        return None
    return repeats.squares / (repeats.count - 1) / repeats.count
