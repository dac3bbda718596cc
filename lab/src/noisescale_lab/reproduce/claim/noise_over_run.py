"""The noise scale along a tuned run: window by window with the product's estimator, beside the exact one.

The ratio of whole-run sums reads several times low, as |G|² falls fast early; so windows are short, and their
noise scales are averaged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from noisescale_core.estimators.uncertainty import estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_core.theory.trade_off import step_efficiency
from noisescale_lab.reproduce.claim.watched_run import Terms
from noisescale_lab.reproduce.trainer import Array

WINDOW_SHARES = (0.05, 0.1, 0.2)
"""Lengths of windows as shares of the run: the first at which four windows in five have a bounded interval.

Small batches far below the noise scale show |G|² so badly that short windows stay open, and those with the largest
noise scales most often: an average of the others reads low."""

CLEAR_Z = 3.0
"""|G|² over its standard error. A ratio reads high by about 1 / z² on average: a tenth here.

Longer windows would be clearer, but the ratio of their sums reads low where |G|² falls within them."""

ENOUGH_SPANS = 8
"""An average over fewer is near the ratio of whole-run sums, which reads several times low."""

ENOUGH_BOUNDED = 0.8
BLOCKS_OF_WINDOW = 16

SEED_STEPS = 320
"""Steps times seeds: a twentieth of it is a window of sixteen blocks; eight are the fewest that give an interval."""

MOST_SEEDS = 16


def seeds_needed(steps: float) -> int:
    """How many times a run of so many steps is watched."""
    return max(1, min(MOST_SEEDS, math.ceil(SEED_STEPS / steps)))


@dataclass(frozen=True, slots=True)
class NoiseWindow:
    """A window of the runs of all seeds at one setting.

    Attributes:
        first: First step.
        num_steps: How many.
        value: Noise scale in examples; None while it is not resolved.
        low: Lower end of its 95 % interval, or the lower bound; None where there is none.
        high: Upper end; None while it is open.
        exact: Of every single example's gradient on the same trajectories; None where |G|² came out not positive.
        z: |G|² over its standard error; None without enough blocks.
    """

    first: int
    num_steps: int
    value: float | None
    low: float | None
    high: float | None
    exact: float | None
    z: float | None = None


def is_well_seen(windows: Sequence[NoiseWindow]) -> bool:
    """Whether four windows in five have a bounded interval."""
    return sum(one.value is not None for one in windows) >= ENOUGH_BOUNDED * len(windows)


def has_enough(watched: Terms) -> bool:
    """Whether the run falls into enough stretches that show |G|² clearly."""
    return len(joined(watched, watched, windows_of(watched, watched))) >= ENOUGH_SPANS


def windows_of(watched: Terms, exact: Terms) -> tuple[NoiseWindow, ...]:
    """Windows of a twentieth of the run or more, one after the other; both terms are [steps, seeds]."""
    steps = len(watched.trace_cov)
    found: tuple[NoiseWindow, ...] = ()
    for share in WINDOW_SHARES:
        length = max(1, round(share * steps))
        found = tuple(_window(watched, exact, first, min(first + length, steps)) for first in range(0, steps, length))
        if is_well_seen(found):
            break
    return found


def joined(watched: Terms, exact: Terms, windows: Sequence[NoiseWindow]) -> tuple[NoiseWindow, ...]:
    """The windows with each one that is not clear joined to those after it until their sums show |G|² clearly.

    Open windows are those with the largest noise scales, so an average without them reads low. The last windows are
    joined to what stands before them; where that opens its interval they are left out.
    """
    found: list[NoiseWindow] = []
    first, steps = 0, len(watched.trace_cov)
    for window in windows:
        end = window.first + window.num_steps
        one = window if first == window.first else _window(watched, exact, first, end)
        if one.value is not None and one.z is not None and one.z >= CLEAR_Z:
            found.append(one)
            first = end
    if first < steps:
        last = _window(watched, exact, found[-1].first if found else 0, steps)
        if last.value is not None:
            found[-1:] = [last]
    return tuple(found)


def resolved_share(windows: Sequence[NoiseWindow], until: float) -> float:
    """Share of the steps before a certain one that windows with a value cover.

    Args:
        windows: Of a run.
        until: The last step that counts.
    """
    return sum(_steps_before(one, until) for one in windows if one.value is not None) / until


def run_average(windows: Sequence[NoiseWindow], until: float = math.inf) -> float | None:
    """Mean over steps before a certain one of the windows that have a value; None where there is none.

    Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1, averages over training runs.
    """
    return _weighted([(_steps_before(one, until), one.value) for one in windows])


def interval_of_average(windows: Sequence[NoiseWindow], until: float = math.inf) -> tuple[float, float] | None:
    """95 % interval of `run_average`, from the intervals of its windows, which share no step.

    It holds the scatter of the measuring; that of the run, with other seeds, is not in it.

    Source: the method of variance estimates recovery, Zou & Donner 2008, doi 10.1002/sim.3095, eq. 3, for a sum.
    """
    known = [
        (_steps_before(one, until), one.value, one.low, one.high)
        for one in windows
        if one.value is not None and one.low is not None and one.high is not None
    ]
    total = sum(weight for weight, *_ in known)
    if total == 0:
        return None
    mean = sum(weight * value for weight, value, *_ in known) / total
    below = math.sqrt(sum((weight * (value - low)) ** 2 for weight, value, low, _ in known)) / total
    above = math.sqrt(sum((weight * (high - value)) ** 2 for weight, value, _, high in known)) / total
    return mean - below, mean + above


def ideal_step_average(windows: Sequence[NoiseWindow], batch: int, until: float = math.inf) -> float | None:
    """The mean with weights B / (B + noise scale): progress counted in ideal steps.

    Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D.1.
    """
    return _weighted(
        [
            (_steps_before(one, until) * step_efficiency(one.value, batch), one.value)
            for one in windows
            if one.value is not None
        ]
    )


def exact_average(windows: Sequence[NoiseWindow], until: float = math.inf) -> float | None:
    """`run_average` of the exact noise scales, of the windows where the watched run has one."""
    return _weighted([(_steps_before(one, until), one.exact) for one in windows if one.value is not None])


def _steps_before(window: NoiseWindow, until: float) -> float:
    return max(0.0, min(window.num_steps, until - window.first))


def _weighted(pairs: Sequence[tuple[float, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in pairs if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total > 0 else None


def _window(watched: Terms, exact: Terms, first: int, end: int) -> NoiseWindow:
    trace, square = watched.trace_cov[first:end], watched.grad_sq_norm[first:end]
    found = estimate(WindowSums.from_blocks(_blocks(trace, square)))
    true_square = float(exact.grad_sq_norm[first:end].sum())
    ratio = float(exact.trace_cov[first:end].sum()) / true_square if true_square > 0 else None
    return NoiseWindow(first, end - first, found.value, found.low, found.high, ratio, found.z)


def _blocks(trace: Array, square: Array) -> list[tuple[float, float, float]]:
    """Stretches of each seed's steps, at least eight in all where there are as many steps."""
    steps, seeds = trace.shape
    edges = np.linspace(0, steps, min(steps, math.ceil(BLOCKS_OF_WINDOW / seeds)) + 1).round().astype(int)
    blocks = []
    for seed in range(seeds):
        for low, high in pairwise(edges):
            x, y = trace[low:high, seed], square[low:high, seed]
            known = np.isfinite(x) & np.isfinite(y)
            if known.any():
                blocks.append((float(known.sum()), float(x[known].sum()), float(y[known].sum())))
    return blocks
