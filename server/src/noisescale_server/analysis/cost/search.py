"""What searching for hyper-parameters costs, and what it would have cost with fewer trials, from the trials there are.

Drawing n of the k trials at random without replacement, the best of them is the i-th best with probability
C(k - i, n - 1) / C(k, n): nothing is simulated. Grid and informed search are read off the same trials.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from noisescale_server.analysis.sweeps.batch_sweep.quick_fit import quick_fits

DRAWS = 400
ENDS = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class BestOf:
    """The best of n trials.

    Attributes:
        num_trials: n.
        median: Steps of the best; None where it is as likely that none of the n reaches the target.
        low: In one draw of ten it is better.
        high: In one draw of ten it is worse; None where none may reach the target.
        none_reaches: Probability that no trial reaches the target.
    """

    num_trials: int
    median: float | None
    low: float | None
    high: float | None
    none_reaches: float


@dataclass(frozen=True, slots=True)
class Strategy:
    """How good the best of the first n trials is, by the order in which they are tried.

    Attributes:
        random: Median over all random orders.
        grid: n rates evenly spaced over the range in logs: mean over where the grid begins.
        informed: Rates in the order of their distance to the one foreseen.
    """

    random: tuple[float | None, ...]
    grid: tuple[float | None, ...]
    informed: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class FewerTrials:
    """B_crit with n trials a batch size, drawn at random from those there are.

    Attributes:
        num_trials: n.
        median: B_crit; None where most draws show no bend.
        low: In one draw of ten it is smaller.
        high: In one draw of ten it is larger; None where the curve shows no bend.
        without_fit: Share of draws in which fewer than three batch sizes reach the target.
    """

    num_trials: int
    median: float | None
    low: float | None
    high: float | None
    without_fit: float


def best_of_n(steps: Sequence[float]) -> tuple[BestOf, ...]:
    """The best of n for n = 1 … k.

    Args:
        steps: To the target, of each trial; infinite where it was not reached.
    """
    ordered = sorted(steps)
    return tuple(_best_of(ordered, n) for n in range(1, len(ordered) + 1))


def _best_of(ordered: Sequence[float], n: int) -> BestOf:
    missed = sum(math.isinf(one) for one in ordered)
    total = math.comb(len(ordered), n)
    median, low, high = (_quantile(ordered, n, share) for share in (0.5, *ENDS))
    return BestOf(n, median, low, high, math.comb(missed, n) / total)


def _quantile(ordered: Sequence[float], n: int, share: float) -> float | None:
    """The least value that the best of n is at most with this probability."""
    k = len(ordered)
    for place, value in enumerate(ordered, start=1):
        at_most = 1 - math.comb(k - place, n) / math.comb(k, n)
        if at_most >= share - 1e-12:
            return value if math.isfinite(value) else None
    return None


def strategies(by_rate: Mapping[float, float], foreseen: float | None) -> Strategy:
    """The best of the first n trials of one batch size, for n = 1 … k.

    Args:
        by_rate: Steps to the target of each learning rate; infinite where it was not reached.
        foreseen: The rate that a rule says; None: the middle of the range in logs.
    """
    rates = sorted(by_rate)
    steps = [by_rate[rate] for rate in rates]
    middle = math.sqrt(rates[0] * rates[-1]) if foreseen is None else foreseen
    nearest = sorted(rates, key=lambda rate: (abs(math.log(rate / middle)), rate))
    counts = range(1, len(rates) + 1)
    return Strategy(
        random=tuple(one.median for one in best_of_n(steps)),
        grid=tuple(_finite(_grid(steps, n)) for n in counts),
        informed=tuple(_finite(min(by_rate[rate] for rate in nearest[:n])) for n in counts),
    )


def _grid(steps: Sequence[float], n: int) -> float:
    """Mean over the beginnings of a grid of n of the rates with equal strides; infinite if one of them misses."""
    stride = len(steps) // n
    beginnings = range(len(steps) - stride * (n - 1))
    return fmean(min(steps[begin + stride * i] for i in range(n)) for begin in beginnings)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def critical_with_fewer(
    trials: Mapping[float, Sequence[float]], *, draws: int = DRAWS, seed: int = 0
) -> tuple[FewerTrials, ...]:
    """B_crit as n of the trials at each batch size would have shown it, for n from 1 to the most at any.

    The best of few trials takes more steps than the best of many, at some batch sizes more than at others: that bends
    the curve where the search was short, not where the noise is.

    Args:
        trials: By batch size the steps to the target of each learning rate; infinite where it was not reached.
        draws: Of each n.
        seed: Of the draws.
    """
    sizes = sorted(size for size, steps in trials.items() if any(map(math.isfinite, steps)))
    if len(sizes) < LEAST_SIZES:
        return ()
    rng = np.random.default_rng(seed)
    most = max(len(trials[size]) for size in sizes)
    log_batch = np.log(np.array(sizes, dtype=float))
    return tuple(_with(n, [trials[size] for size in sizes], log_batch, draws, rng) for n in range(1, most + 1))


LEAST_SIZES = 3


def _with(
    n: int, steps: Sequence[Sequence[float]], log_batch: np.ndarray, draws: int, rng: np.random.Generator
) -> FewerTrials:
    best = np.column_stack([_drawn(np.array(of_size, dtype=float), n, draws, rng) for of_size in steps])
    log_steps = np.where(np.isfinite(best), np.log(best), np.nan)
    usable = np.isfinite(log_steps).sum(axis=1) >= LEAST_SIZES
    if not usable.any():
        return FewerTrials(n, None, None, None, 1.0)
    found = quick_fits(log_batch, log_steps[usable], np.ones(len(log_batch))).log_critical
    low, median, high = (float(one) for one in np.quantile(found, (ENDS[0], 0.5, ENDS[1]), method="inverted_cdf"))
    return FewerTrials(n, _batch(median), _batch(low), _batch(high), 1 - float(usable.mean()))


def _drawn(steps: np.ndarray, n: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """The best of n of the trials, of each draw, [draws]; of fewer trials than n all of them."""
    places = rng.random((draws, len(steps))).argsort(axis=1)[:, :n]
    best: np.ndarray = steps[places].min(axis=1)
    return best


def _batch(log_critical: float) -> float | None:
    """B_crit; None where the curve has no bend within the batch sizes and beyond."""
    return math.exp(log_critical) if math.isfinite(log_critical) else None
