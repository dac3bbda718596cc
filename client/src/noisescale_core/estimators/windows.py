"""Sums over the blocks of a window: they add, and the ratio is taken last.

A *block* is one row of data or one bucket of the pyramid: n updates whose trace-covariance estimates sum to X and whose
squared-gradient-norm estimates sum to Y. Block sums carry the autocorrelation of neighbouring steps, so the spread of
blocks gives an honest interval where the spread of single steps would not.
"""

from collections.abc import Iterable
from typing import NamedTuple


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
