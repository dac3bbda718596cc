"""A noise scale from the gradient norms of several runs, of which each has one batch size: a kind of its own.

Where runs at batch sizes B_1, B_2, … stand at equal loss, E|g_B|² = |G|² + tr Σ / B (McCandlish et al. 2018,
arXiv:1812.06162, appendix A.1) is a line in 1 / B, with |G|² at its left end and slope tr Σ. That takes |G|² and tr Σ
for equal in all runs, and they are not: the parameters differ. By how much is seen where there are more batch sizes
than the line's two; it widens every interval, and each result carries that it is of different parameters.

At equal loss tr Σ hardly depends on the batch size and |G|² does: the noise of small batches shakes the parameters, and
the gradient has a part more that falls as 1 / B. The line takes that part for noise. So what it says is the noise scale
of runs with large batches at that loss, some 10 % too high, and several times that of runs with small ones
(`benchmarks/results/between_runs.csv`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import MeansOfTerms, fieller

DIFFERENT_PARAMETERS = "different_parameters"
"""The flag of every such estimate."""

USUAL_SPREAD = 0.15
"""Relative standard deviation by which |g_B|² of a batch size at a loss misses the line, at least: what tilts the line
without bending it nobody can see. Chosen where nine in ten intervals then held, and asked where nothing was chosen:
there 99 % held (docs/estimators.md)."""

USUAL_WEIGHT = 4
"""Degrees of freedom that this is worth."""

MIN_SIZE_RATIO = 1.5
"""Of the largest to the smallest batch size: nearer ones say nothing of a slope."""


@dataclass(frozen=True, slots=True)
class SizedNorm:
    """The squared gradient norm at one batch size, near one loss.

    Attributes:
        batch_size: Examples of an optimizer step.
        sq_norm: Mean of |g_B|² over steps near the loss: a mean of squares, before clipping.
        relative_error: Standard error of that mean over the mean, from the steps alone.
    """

    batch_size: float
    sq_norm: float
    relative_error: float


@dataclass(frozen=True, slots=True)
class BetweenRuns:
    """tr Σ / |G|² between runs at one loss, as of those with large batches.

    Attributes:
        value: In examples; None while |G|² is not above 0 at this level.
        low: Lower end; None where it has none.
        high: Upper end; None: unbounded.
        level: Confidence level.
        trace_cov: tr Σ, in squared gradient × examples.
        grad_sq_norm: |G|², in squared gradient.
        spread: Relative standard deviation by which runs miss the line.
        flag: `DIFFERENT_PARAMETERS`.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    trace_cov: float
    grad_sq_norm: float
    spread: float
    flag: str = DIFFERENT_PARAMETERS


def between_runs(losses: Sequence[Sequence[SizedNorm]], *, level: float = 0.95) -> list[BetweenRuns]:
    """The noise scale at each of several losses; how far runs miss their lines is taken from all of them together.

    Args:
        losses: For each loss, the norms of the runs that pass it, at two or more batch sizes.
        level: Confidence level of each interval.

    Raises:
        EstimationError: Where a loss has fewer than two batch sizes, they are too near, or a norm is not positive.

    Source: weighted least squares with errors of a relative size, and Fieller's set for the ratio (MATH 3.3); the
    allowance for different parameters is ours.
    """
    for norms in losses:
        _check(norms)
    points = [_by_batch_size(norms) for norms in losses]
    spread, freedom = _spread(points)
    return [_at_one_loss(norms, spread, freedom, level) for norms in points]


def _by_batch_size(norms: Sequence[SizedNorm]) -> list[SizedNorm]:
    """One point a batch size: its runs differ from those of another size in the same way, however many there are."""
    found = []
    for size in sorted({one.batch_size for one in norms}):
        own = [one for one in norms if one.batch_size == size]
        mean = math.fsum(one.sq_norm for one in own) / len(own)
        error = math.sqrt(math.fsum((one.relative_error * one.sq_norm) ** 2 for one in own)) / len(own)
        found.append(SizedNorm(size, mean, error / mean))
    return found


def _check(norms: Sequence[SizedNorm]) -> None:
    if not all(one.sq_norm > 0 and one.batch_size > 0 and one.relative_error >= 0 for one in norms):
        raise EstimationError("norms and batch sizes must be positive: leave out steps without a gradient")
    sizes = {one.batch_size for one in norms}
    if len(sizes) < 2 or max(sizes) < MIN_SIZE_RATIO * min(sizes):
        raise EstimationError(
            f"batch sizes must differ by {MIN_SIZE_RATIO:g} times at least, got {sorted(sizes)}: add runs at another"
        )


def _spread(losses: Sequence[Sequence[SizedNorm]]) -> tuple[float, int]:
    """Relative spread around lines beyond what steps explain, the usual one at least, with its degrees of freedom."""
    total, freedom = USUAL_WEIGHT * USUAL_SPREAD**2, USUAL_WEIGHT
    for norms in losses:
        if len(norms) > 2:
            line = _line(norms, USUAL_SPREAD)
            for one in norms:
                miss = one.sq_norm / line.at(one.batch_size) - 1
                total += max(0.0, miss**2 - one.relative_error**2)
            freedom += len(norms) - 2
    return max(USUAL_SPREAD, math.sqrt(total / freedom)), freedom


@dataclass(frozen=True, slots=True)
class _Line:
    """|g_B|² = c + a / B with the covariance of both."""

    a: float
    c: float
    v_aa: float
    v_ac: float
    v_cc: float

    def at(self, batch_size: float) -> float:
        """The line at a batch size, never below a hundredth of its parts, which could cancel."""
        return max(self.c + self.a / batch_size, 0.01 * (abs(self.c) + abs(self.a) / batch_size))


def _line(norms: Sequence[SizedNorm], spread: float) -> _Line:
    """Weighted least squares; errors are relative to the line itself, which is found in a few rounds."""
    expected = [one.sq_norm for one in norms]
    for _ in range(4):
        variances = [
            (size * size) * (spread**2 + one.relative_error**2) for size, one in zip(expected, norms, strict=True)
        ]
        line = _weighted(norms, variances)
        expected = [line.at(one.batch_size) for one in norms]
    return line


def _weighted(norms: Sequence[SizedNorm], variances: Sequence[float]) -> _Line:
    weights = [1 / variance for variance in variances]
    inverse = [1 / one.batch_size for one in norms]
    total = math.fsum(weights)
    centre = math.fsum(w * x for w, x in zip(weights, inverse, strict=True)) / total
    mean = math.fsum(w * one.sq_norm for w, one in zip(weights, norms, strict=True)) / total
    spread = math.fsum(w * (x - centre) ** 2 for w, x in zip(weights, inverse, strict=True))
    a = math.fsum(w * (x - centre) * one.sq_norm for w, x, one in zip(weights, inverse, norms, strict=True)) / spread
    return _Line(a, mean - a * centre, 1 / spread, -centre / spread, 1 / total + centre**2 / spread)


def _at_one_loss(norms: Sequence[SizedNorm], spread: float, freedom: int, level: float) -> BetweenRuns:
    line = _line(norms, spread)
    quantile = t_quantile(0.5 + level / 2, freedom)
    low, high = fieller(MeansOfTerms(line.a, line.c, line.v_aa, line.v_ac, line.v_cc), quantile)
    is_resolved = line.c > 0 and line.a > 0 and high is not None
    return BetweenRuns(
        value=line.a / line.c if is_resolved else None,
        low=low,
        high=high,
        level=level,
        trace_cov=line.a,
        grad_sq_norm=line.c,
        spread=spread,
    )
