"""Does a larger model have a larger noise scale at equal loss? Windows of runs, clustered by run.

An analysis of covariance, log φ = a + b log L + c log N: c is the effect of the size N at equal loss L. Kaplan et al.
2020, arXiv:2001.08361, section 5.1, and McCandlish et al. 2018, arXiv:1812.06162, figure 8, saw next to none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from noisescale_server.analysis.comparison.equal_loss import LossWindow, NotKnown
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.clustered_regression import Regression, regress

Verdict = Literal["no_effect_seen", "larger", "smaller", "cannot_tell"]

FEWEST_RUNS = 3
FEWEST_WINDOWS = 8
SMALL = 1.5
"""An interval within × or ÷ this per ten times the size is small enough to say that no effect was seen."""


@dataclass(frozen=True, slots=True)
class SizedRun:
    """A run with its model's size and its windows."""

    size: float
    windows: tuple[LossWindow, ...]


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """The effect of the model's size at equal loss.

    Attributes:
        factor_per_decade: By which the noise scale changes for ten times the size, at equal loss.
        loss_power: d log φ / d log L over all runs.
        interaction: Change of that power for ten times the size; an interval without 0 says that one factor does not
            serve at every loss. None with too few runs.
        verdict: In a word; `explanation` in a sentence.
        explanation: With the factor and its interval.
        common_low: Lower end of the losses that every size has seen.
        common_high: Their upper end; below the lower end where there are none, and then "equal loss" is extrapolated.
        num_runs: Clusters.
        num_sizes: Different sizes.
        num_windows: Resolved and warm windows.
    """

    factor_per_decade: Estimate
    loss_power: Estimate
    interaction: Estimate | None
    verdict: Verdict
    explanation: str
    common_low: float
    common_high: float
    num_runs: int
    num_sizes: int
    num_windows: int

    @property
    def has_common_losses(self) -> bool:
        """Whether every size has been at some same loss."""
        return self.common_low < self.common_high


def size_effect(runs: Sequence[SizedRun], *, level: float = 0.95) -> SizeEffect | NotKnown:
    """The effect of size over runs of one task, or what is missing."""
    known = [_warm(run) for run in runs]
    known = [run for run in known if run.windows]
    sizes = {run.size for run in known}
    num_windows = sum(len(run.windows) for run in known)
    if len(known) < FEWEST_RUNS or len(sizes) < 2 or num_windows < FEWEST_WINDOWS:
        return NotKnown(
            f"{len(known)} runs of {len(sizes)} sizes have {num_windows} resolved windows; {FEWEST_RUNS} runs of 2 "
            f"sizes with {FEWEST_WINDOWS} windows are needed: train some with their size in the config."
        )
    main = _regress(known, with_interaction=False)
    both = _regress(known, with_interaction=True) if len(known) > FEWEST_RUNS else None
    slope = main.estimate("size", level)
    factor = Estimate(math.exp(slope.value), _exp(slope.low), _exp(slope.high), level)
    verdict = _verdict(factor)
    low, high = _common_losses(known)
    return SizeEffect(
        factor_per_decade=factor,
        loss_power=main.estimate("loss", level),
        interaction=None if both is None else both.estimate("interaction", level),
        verdict=verdict,
        explanation=_explained(verdict, factor),
        common_low=low,
        common_high=high,
        num_runs=len(known),
        num_sizes=len(sizes),
        num_windows=num_windows,
    )


def _warm(run: SizedRun) -> SizedRun:
    return SizedRun(run.size, tuple(window for window in run.windows if window.is_warm and window.loss > 0))


def _regress(runs: Sequence[SizedRun], *, with_interaction: bool) -> Regression:
    windows = [(number, run.size, window) for number, run in enumerate(runs) for window in run.windows]
    log_loss = np.log([window.loss for _, _, window in windows])
    log_size = np.log10([size for _, size, _ in windows])
    columns = {"loss": log_loss, "size": log_size}
    if with_interaction:
        columns["interaction"] = (log_loss - log_loss.mean()) * (log_size - log_size.mean())
    return regress(
        columns,
        np.array([window.log_value for _, _, window in windows]),
        np.array([window.standard_error for _, _, window in windows]),
        [number for number, _, _ in windows],
    )


def _common_losses(runs: Sequence[SizedRun]) -> tuple[float, float]:
    by_size: dict[float, list[float]] = {}
    for run in runs:
        by_size.setdefault(run.size, []).extend(window.loss for window in run.windows)
    return max(min(losses) for losses in by_size.values()), min(max(losses) for losses in by_size.values())


def _verdict(factor: Estimate) -> Verdict:
    low, high = factor.low, factor.high
    if low is not None and low > 1:
        return "larger"
    if high is not None and high < 1:
        return "smaller"
    is_narrow = low is not None and high is not None and low >= 1 / SMALL and high <= SMALL
    return "no_effect_seen" if is_narrow else "cannot_tell"


def _explained(verdict: Verdict, factor: Estimate) -> str:
    low = "no lower bound" if factor.low is None else f"{factor.low:.3g}"
    high = "no upper bound" if factor.high is None else f"{factor.high:.3g}"
    shown = f"×{factor.value:.3g} per 10 × size at equal loss, {low} – {high}"
    start = {"no_effect_seen": "No", "larger": "Yes, larger", "smaller": "Yes, smaller", "cannot_tell": "Cannot tell"}
    return f"{start[verdict]}: {shown}."


def _exp(value: float | None) -> float | None:
    return None if value is None or abs(value) > 100 else math.exp(value)
