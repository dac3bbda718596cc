"""A check beside the likelihood: the seeds of a sweep drawn again, the best learning rates chosen anew, and refitted.

It holds what the likelihood does not: the best of a grid of noisy trials reads low, since luck chooses along with the
learning rate. Seeds that all rates of a batch size share are drawn together.

Source: Efron 1983, JASA 78, "Estimating the error rate of a prediction rule", for the optimism of a choice that is
judged by the data it was made on: what the chosen rate shows in a draw less what it shows in the data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.batch_sweep.quick_fit import QuickFits, quick_fits
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.hyperbola import Array
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint
from noisescale_server.analysis.sweeps.steps_to_target.many_crossings import many_crossings
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import CommonCurves
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, by_batch_size

DRAWS = 1000
FEWEST_SEEDS = 2
FEWEST_BATCH_SIZES = 3
SEED = 1983
"""Of the draws: the same sweep gives the same answer."""


@dataclass(frozen=True, slots=True)
class Luck:
    """How much the choice of the learning rate flatters a batch size.

    Attributes:
        batch_size: In examples.
        log_ratio: Mean log of the steps that the chosen rate shows over those that it would show by itself; at most
            about 0.
    """

    batch_size: float
    log_ratio: float


@dataclass(frozen=True, slots=True)
class WithoutLuck:
    """The curve through the steps with the luck of the choice taken away; a check, without intervals of its own."""

    min_steps: float | None
    min_examples: float | None
    critical_batch: float | None


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What drawing the seeds again says.

    Attributes:
        draws: How many.
        min_steps: Median of S_min over the draws, and its percentile interval.
        min_examples: The same of E_min.
        critical_batch: The same of B_crit; an end is None where the curve has none.
        luck: At each batch size that reached the target.
        without_luck: The curve with it taken away.
        explanation: In a sentence.
    """

    draws: int
    min_steps: Estimate
    min_examples: Estimate
    critical_batch: Estimate
    luck: tuple[Luck, ...]
    without_luck: WithoutLuck
    explanation: str


@dataclass(frozen=True, slots=True)
class NoBootstrap:
    """Why seeds cannot be drawn again."""

    explanation: str


def bootstrap(
    settings: Sequence[Setting], points: Sequence[TargetPoint], fit: SweepFit, target: float
) -> Bootstrap | NoBootstrap:
    """The sweep of a fit with its seeds drawn again, at the level of the fit.

    Batch sizes that did not reach the target are left out, and in a draw those that do not reach it there; so are those
    below B_opt of a sweep that turns, since the hyperbola alone is refitted.
    """
    reached = [p for p in points if p.average.steps.steps is not None and p.batch_size >= fit.least_batch]
    if len(reached) < FEWEST_BATCH_SIZES:
        return NoBootstrap(
            f"Drawing seeds again needs {FEWEST_BATCH_SIZES} batch sizes from B_opt upwards: add larger."
        )
    if any(point.average.num_seeds < FEWEST_SEEDS for point in reached):
        return NoBootstrap(
            f"Drawing seeds again needs {FEWEST_SEEDS} of them at every best learning rate: repeat runs."
        )
    generator = np.random.default_rng(SEED)
    grids = dict(by_batch_size(settings))
    drawn = [_drawn(grids[point.batch_size], target, generator) for point in reached]
    log_steps = np.stack([shown for shown, _ in drawn], axis=1)
    luck = tuple(Luck(point.batch_size, flattery) for point, (_, flattery) in zip(reached, drawn, strict=True))
    log_batch, weight = np.log([point.batch_size for point in reached]), _weights(reached, fit)
    found = quick_fits(log_batch, log_steps, weight)
    mended = np.array([_log_steps(point) for point in reached]) - np.array([one.log_ratio for one in luck])
    without = _without_luck(quick_fits(log_batch, mended[None, :], weight))
    critical = _percentiles(found.log_critical, fit.level)
    return Bootstrap(
        draws=DRAWS,
        min_steps=_percentiles(found.log_min_steps, fit.level),
        min_examples=_percentiles(found.log_min_steps + found.log_critical, fit.level),
        critical_batch=critical,
        luck=luck,
        without_luck=without,
        explanation=_explained(fit, critical, luck, without),
    )


def _drawn(settings: Sequence[Setting], target: float, generator: np.random.Generator) -> tuple[Array, float]:
    """Log steps at the best rate of each draw, NaN where no rate arrived, [R]; and the optimism of that choice."""
    usable = [setting for setting in settings if setting.curves]
    together = [CommonCurves.of(setting.curves) for setting in usable]
    seeds = {tuple(trial.seed for trial in setting.trials) for setting in usable}
    are_shared = len(seeds) == 1 and None not in next(iter(seeds)) and len({len(one.values) for one in together}) == 1
    weights = [_seed_weights(len(one.values), generator) for one in together[: 1 if are_shared else None]]
    weights = weights * len(together) if are_shared else weights
    shown = [many_crossings(one, drawn, target) for one, drawn in zip(together, weights, strict=True)]
    usual = [many_crossings(one, np.full((1, len(one.values)), 1 / len(one.values)), target)[0] for one in together]
    every = np.stack(shown, axis=1)
    best = np.argmin(every, axis=1)
    chosen, by_itself = every[np.arange(DRAWS), best], np.array(usual)[best]
    has_both = np.isfinite(chosen) & np.isfinite(by_itself)
    flattery = float(np.mean(chosen[has_both] - by_itself[has_both])) if has_both.any() else 0.0
    return np.where(np.isfinite(chosen), chosen, np.nan), flattery


def _seed_weights(count: int, generator: np.random.Generator) -> Array:
    """Shares of the seeds in each draw, [R, N], spread so that their mean has its unbiased variance."""
    counts = generator.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    spread = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    weights: Array = 1 / count + spread * (counts - 1) / count
    return weights


def _weights(points: Sequence[TargetPoint], fit: SweepFit) -> Array:
    """What the fit gives each batch size: its repeats where these are what scatters, else all alike.

    Of noise that differs between batch sizes the trend is left out here: a check need not be as sharp as the fit.
    """
    if fit.noise_level is NoiseLevel.RUNS:
        return np.array([float(point.average.num_seeds) for point in points])
    return np.ones(len(points))


def _log_steps(point: TargetPoint) -> float:
    assert point.average.steps.steps is not None
    return math.log(point.average.steps.steps)


def _percentiles(logs: Array, level: float) -> Estimate:
    """Median and ends of values given as logarithms; an end that is not finite is none."""
    low, middle, high = np.quantile(logs, [(1 - level) / 2, 0.5, (1 + level) / 2], method="nearest")
    ends = [math.exp(end) if math.isfinite(end) else None for end in (low, high)]
    return Estimate(math.exp(middle), ends[0], ends[1], level)


def _without_luck(found: QuickFits) -> WithoutLuck:
    log_critical, log_steps = float(found.log_critical[0]), float(found.log_min_steps[0])
    is_known = math.isfinite(log_critical)
    return WithoutLuck(
        min_steps=math.exp(log_steps),
        min_examples=math.exp(log_steps + log_critical) if is_known else None,
        critical_batch=math.exp(log_critical) if is_known else None,
    )


def _explained(fit: SweepFit, critical: Estimate, luck: Sequence[Luck], without: WithoutLuck) -> str:
    shares = [-math.expm1(one.log_ratio) for one in luck]
    ends = [f"{end:,.4g}" if end is not None else "open" for end in (critical.low, critical.high)]
    known = "has no value" if without.critical_batch is None else f"is {without.critical_batch:,.4g}"
    return (
        f"The best learning rate of each grid reads low by {min(shares):.1%} to {max(shares):.1%} of the steps, by "
        f"luck; without that B_crit {known}, with it {fit.critical_batch.value:,.4g}. Drawing seeds again gives "
        f"[{ends[0]}, {ends[1]}]."
    )
