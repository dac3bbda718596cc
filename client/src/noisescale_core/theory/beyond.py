"""What devices beyond one run's batch buy instead: runs side by side, trials of a search, a larger model.

A run whose batch has grown to the devices that there are takes S_min (1 + B_crit / B) steps and gets B_crit /
(B_crit + B) of its examples' worth (McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11); k runs on a k-th of the
devices each take longer and waste less. What the best of k runs is worth is order statistics, and what a larger model
takes, for language models alone, a published law.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive, require_share
from noisescale_core.theory.intervals import Interval
from noisescale_core.theory.language_models import GROWTH
from noisescale_core.theory.trade_off import steps_factor

MOST_RUNS = 2**24
"""Side by side: as many as there may be devices."""

TOP_SHARE, SURE = 0.05, 0.95
"""Of all settings that a random search draws from, and how surely one of its trials is among them: 59 trials.

Source: Bergstra and Bengio 2012, Journal of Machine Learning Research 13, 281-305."""

_REACH, _POINTS = 12.0, 480
"""Standard deviations to either side, and steps between: the integrand is smooth and ends in zeros, so a sum of equal
steps of a sixth of its width is right to the last digits."""


@dataclass(frozen=True, slots=True)
class LargerModel:
    """A language model so many times as large, on as many times the devices, its tokens grown in proportion.

    Attributes:
        times: Parameters, tokens and devices, divided by those of the run.
        critical_batch: Factor on B_crit.
        hours: Factor on the hours at the same batch, were a model split over devices without loss: the least.
        device_hours: Factor on the device-hours.
    """

    times: float
    critical_batch: Interval
    hours: Interval
    device_hours: Interval


def ways_to_divide(num_devices: int, devices_of_a_run: int) -> tuple[int, ...]:
    """Numbers of runs side by side to look at: one on all devices, doublings, and as many of the run as fit.

    Two are among them wherever there are two devices, even where only one run of this size fits.

    Args:
        num_devices: That there are.
        devices_of_a_run: That the best batch keeps busy.

    Raises:
        DomainError: Unless both are 1 or more.
    """
    require_positive("count the devices that there are", num_devices=num_devices)
    require_positive("a run keeps one device busy at least", devices_of_a_run=devices_of_a_run)
    most = min(max(num_devices // devices_of_a_run, 2), num_devices, MOST_RUNS)
    doublings = [2**power for power in range(most.bit_length()) if 2**power <= most]
    return tuple(sorted({*doublings, most}))


def times_as_many(*, num_runs: int, batch_of_each: float, batch_of_all: float, critical_batch: float) -> float:
    """Runs side by side finish so many times as many in a time as one after another on all devices.

    k S(B_all) / S(B_each), where devices come with the batch, so that a step takes the same time at any.

    Args:
        num_runs: k, side by side.
        batch_of_each: In examples.
        batch_of_all: Of one run on all devices.
        critical_batch: B_crit in examples; 0 and infinity are its limits.

    Raises:
        DomainError: If a number is not positive or B_crit negative.
    """
    require_positive("one run is the least", num_runs=num_runs)
    return num_runs * steps_factor(from_batch=batch_of_each, to_batch=batch_of_all, critical_batch=critical_batch)


@lru_cache(maxsize=256)
def best_of(num_runs: int) -> float:
    """How far the best of k equal runs lies above their mean, in standard deviations between runs: E[max of k].

    For normal scores, ∫ x k φ(x) Φ(x)^(k-1) dx: 0, 0.564, 0.846, 1.029 for one to four. It is known before the runs;
    how large a standard deviation is, only seeds tell.

    Args:
        num_runs: k.

    Raises:
        DomainError: Unless k lies between 1 and 2²⁴.
    """
    if not 1 <= num_runs <= MOST_RUNS:
        raise DomainError(f"num_runs must lie between 1 and {MOST_RUNS}, got {num_runs}: count runs side by side")
    normal, step = NormalDist(), 2 * _REACH / _POINTS
    places = (step * place - _REACH for place in range(_POINTS + 1))
    return step * num_runs * sum(x * normal.pdf(x) * _below(x) ** (num_runs - 1) for x in places)


def _below(x: float) -> float:
    return 1 - math.erfc(x / math.sqrt(2)) / 2 if x > 0 else math.erfc(-x / math.sqrt(2)) / 2


def chance_of_top(num_trials: int, share: float = TOP_SHARE) -> float:
    """Probability that one of so many random trials at least is among this best share of all settings.

    Args:
        num_trials: Drawn independently.
        share: Of all settings, 0.05 for the best twentieth.

    Raises:
        DomainError: If the share is not between 0 and 1 or the number not positive.
    """
    require_positive("a search has a trial", num_trials=num_trials)
    require_share("0.05 is the best twentieth", share=share)
    return -math.expm1(num_trials * math.log1p(-share))


def trials_needed(share: float = TOP_SHARE, sure: float = SURE) -> int:
    """The fewest random trials of which one is among this best share of all settings, as surely as asked.

    Args:
        share: Of all settings.
        sure: Probability.

    Raises:
        DomainError: If either is not between 0 and 1.
    """
    require_share("0.05 is the best twentieth", share=share)
    require_share("0.95 is usual", sure=sure)
    # one part in 10^12 less: a probability that is met exactly must not cost a trial more
    return max(1, math.ceil(math.log1p(-sure) / math.log1p(-share) * (1 - 1e-12)))


def larger_model(*, times: float, batch: float, critical_batch: Interval) -> LargerModel:
    """A language model so many times as large at the same tokens a parameter, on so many times the devices.

    B_crit goes as the tokens to the power 0.44 (0.42 to 0.68 as published), the fewest tokens in proportion, so the
    steps at batch B are times^(1 - q) (B + times^q B_crit) / (B + B_crit) as many. A step takes as long: so many
    times the work on so many times the devices. From scratch, one epoch, Adam or AdamW.

    Args:
        times: Parameters divided by those of the run.
        batch: Of both runs, in any unit.
        critical_batch: B_crit of the run in the same unit, with its interval; 0 and infinity are its limits.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("1 is the same model", times=times, batch=batch)
    level = critical_batch.level
    usual, least_power, most_power = (times**power for power in GROWTH)
    factor = Interval(usual, least_power, most_power, level)

    def hours(grown: float, critical: float) -> float:
        if critical == math.inf:
            return times
        return times / grown * (batch + grown * critical) / (batch + critical)

    ends = [
        hours(grown, critical)
        for grown in (factor.low, factor.high)
        for critical in (critical_batch.low, critical_batch.high)
    ]
    least, most = min(ends), max(ends)
    taken = Interval(hours(factor.value, critical_batch.value), least, most, level)
    return LargerModel(times, factor, taken, taken.times(times))
