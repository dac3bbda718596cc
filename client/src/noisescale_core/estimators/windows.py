"""Sums over the blocks of a window: they add, and the ratio is taken last.

A *block* is one row of data or one bucket of the pyramid: n updates whose trace-covariance estimates sum to X and whose
squared-gradient-norm estimates sum to Y. Block sums carry the autocorrelation of neighbouring steps, so the spread of
blocks gives an honest interval where the spread of single steps would not.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

RESOLVED_Z = 5.0
"""z = |G|²^ / se from which a noise scale counts as resolved."""

LONGEST_RUN = 2**53 - 1
"""The largest step that the wire format knows: to wait for more updates is no advice."""

FIRST_LOOK = 0.85
"""Share of the updates needed at which a run that looks at every step is resolved: some window is a little lucky.

The median of simulated runs, at any noise, d_eff and number of groups (`benchmarks/benchmark_outlook.py`)."""

STEEP = 1.6
"""A window of constant length that needs up to so many times its length is resolved while it keeps that length: it
gets many chances."""


class WindowSums(NamedTuple):
    """Additive statistics of the blocks of a window.

    A tuple, as two are made for every point of every chart: a frozen dataclass takes three times as long to make.

    Attributes:
        num_blocks: m, blocks that hold an estimate.
        num_updates: Σ n.
        trace_cov: Σ X, squared gradient × examples.
        grad_sq_norm: Σ Y, squared gradient.
        trace_cov_sq: Σ X².
        grad_sq_norm_sq: Σ Y².
        cross: Σ X Y.
        weighted_trace_cov: Σ n X.
        weighted_grad_sq_norm: Σ n Y.
        num_updates_sq: Σ n².
    """

    num_blocks: int = 0
    num_updates: float = 0.0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    trace_cov_sq: float = 0.0
    grad_sq_norm_sq: float = 0.0
    cross: float = 0.0
    weighted_trace_cov: float = 0.0
    weighted_grad_sq_norm: float = 0.0
    num_updates_sq: float = 0.0

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[float, float, float]]) -> "WindowSums":
        """Sums of blocks given as (n, X, Y)."""
        num_blocks, sums = 0, [0.0] * 9
        for n, x, y in blocks:
            num_blocks += 1
            for place, value in enumerate((n, x, y, x * x, y * y, x * y, n * x, n * y, n * n)):
                sums[place] += value
        return cls(num_blocks, *sums)

    @classmethod
    def from_moments(
        cls,
        *,
        num_updates: int,
        trace_cov: float,
        grad_sq_norm: float,
        trace_cov_sq: float,
        grad_sq_norm_sq: float,
        cross: float,
    ) -> "WindowSums":
        """Sums of single updates from their first and second moments.

        Each update is a block of its own, so an interval from here assumes independent steps.
        """
        n = float(num_updates)
        return cls(
            num_updates, n, trace_cov, grad_sq_norm, trace_cov_sq, grad_sq_norm_sq, cross, trace_cov, grad_sq_norm, n
        )

    def __add__(self, other: "WindowSums") -> "WindowSums":  # type: ignore[override]  # sums, not longer tuples
        return WindowSums(
            self.num_blocks + other.num_blocks,
            self.num_updates + other.num_updates,
            self.trace_cov + other.trace_cov,
            self.grad_sq_norm + other.grad_sq_norm,
            self.trace_cov_sq + other.trace_cov_sq,
            self.grad_sq_norm_sq + other.grad_sq_norm_sq,
            self.cross + other.cross,
            self.weighted_trace_cov + other.weighted_trace_cov,
            self.weighted_grad_sq_norm + other.weighted_grad_sq_norm,
            self.num_updates_sq + other.num_updates_sq,
        )


# How many updates a window needs until its noise scale is resolved, and how long a run takes until it has them.


@dataclass(frozen=True, slots=True)
class UpdatesToResolve:
    """Updates in all that a window like this one needs before its z is 5; None where no run is as long.

    Attributes:
        expected: From the z found; None where z ≤ 0 too.
        at_least: From the upper end of the interval for z; None where even that end is not above 0.
        at_most: From its lower end; None while noise alone could explain the window.
    """

    expected: int | None
    at_least: int | None
    at_most: int | None


def predict_updates_to_resolve(*, num_updates: float, z: float, level: float = 0.95) -> UpdatesToResolve:
    """Updates that a window needs to be resolved, with an interval; usable from the first 8 updates on.

    z grows with the root of the number of updates and is itself known to ± 1: N (5 / z)², at both ends of z ± q too.

    Args:
        num_updates: N, updates that the z is of.
        z: Mean of the |G|² estimates divided by its standard error.
        level: Confidence level of the interval.

    Source: with rel.var the relative variance of one update's |G|², N = rel.var / δ² for a relative standard error of
        δ = 1 / 5; the moments of the updates give rel.var, whatever the noise is.
    """
    half_width = NormalDist().inv_cdf(0.5 + level / 2)
    return UpdatesToResolve(
        expected=updates_needed(num_updates, z),
        at_least=updates_needed(num_updates, z + half_width),
        at_most=updates_needed(num_updates, z - half_width),
    )


def updates_needed(num_updates: float, z: float) -> int | None:
    """N (5 / z)²; None where z is not above 0 or no run is as long."""
    if not z > 0:
        return None
    # `**` would raise where this becomes infinite
    needed = num_updates * (RESOLVED_Z / z) * (RESOLVED_Z / z)
    return math.ceil(needed) if needed <= LONGEST_RUN else None


def run_until_resolved(needed: float, *, window_share: float, shortest_window: int) -> float:
    """Updates of a run until its latest window is resolved for the first time; the median of many runs.

    A window that needs no more than its shortest length is resolved as soon as as many updates lie before it, which
    confirm it. One that needs much more has to grow with the run. In between the run's length grows exponentially.

    Args:
        needed: Updates after which the window's expected z is 5.
        window_share: Share of the run that the window holds.
        shortest_window: Its least updates.
    """
    earliest = 2.0 * shortest_window
    if needed <= shortest_window:
        return earliest
    steep = STEEP * shortest_window
    late = FIRST_LOOK * max(needed, steep) / window_share
    if needed >= steep:
        return late
    return earliest * math.exp(math.log(late / earliest) * (needed - shortest_window) / (steep - shortest_window))
