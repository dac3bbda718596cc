"""Noise scales in the geometry of a norm other than the Euclidean: of sign and of spectral updates.

Steepest descent in a norm, the sign update in ℓ∞ and the orthogonalised one in the spectral norm, gains the dual norm
|G|* of the gradient, so its noise scale is (|σ|* / |G|*)², with |σ|* the dual norm of one example's deviation
(Naganuma et al. 2026, arXiv:2602.03001; ℓ₁ for the sign, the nuclear norm for matrices). A dual norm is not a square:
its plug-in value |ḡ|* is too large wherever noise counts, and no estimator is unbiased. What can be had are two bounds
that hold for any distribution. Cut the step's small batches into two halves with mean gradients a and b, and let d(a)
be the direction in which an update of norm 1 gains most of a (sign a, or its polar factor). Then

    U = (|a|* + |b|*) / 2                     E U ≥ |G|*   a norm is convex
    L = (<d(a), b> + <d(b), a>) / 2           E L ≤ |G|*   d(a) is independent of b and gains at most |G|* of G

and E L = 0 where G = 0. Their product is what this file adds up for |G|*²: the excess of U and the lack of L cancel
where the gradient's coordinates relate to their noise like Gaussians of one width, whatever that width, and to first
order in 1 / batch for any smooth density. `docs/kinds.md` derives that, and gives the bias elsewhere.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.noise_scale import Terms

WIDEST_BRACKET = 3.0
"""E U / E L up to which a step counts: |G|*² is then within this factor of what is estimated, above and below."""

DECAY = 0.95
"""Of the averages of U and L that decide whether the next step counts: about 40 measured steps."""

MIN_STEPS = 16
"""Measured steps before the first that can count."""


@dataclass(frozen=True, slots=True)
class DualNorms:
    """What one step says.

    Attributes:
        noise: Estimate of |σ|*, the dual norm of one example's deviation; gradient × √examples.
        upper: U, in units of the gradient.
        lower: L, likewise; negative where noise has the upper hand.
    """

    noise: float
    upper: float
    lower: float


@dataclass(frozen=True, slots=True)
class Bracket:
    """Between which values the noise scale lies, in expectation, for any distribution.

    Attributes:
        low: |σ|*² / U², examples.
        high: |σ|*² / L², examples; None where L does not stand out.
    """

    low: float
    high: float | None


class DualNormSeries:
    """Turns the dual norms of one step after the other into terms that add.

    Products are of two different steps: |σ|*² from this step's noise and the last one's, |G|*² from this step's L and
    the last one's U. Within one step the two factors share their noise, which would bias both products upwards by
    1 / d_eff (2 to 6 % on a small network). Whether a step counts is decided by the steps before it, never by its own
    L: to choose steps with a large L would make a gradient out of noise.
    """

    def __init__(self) -> None:
        self._last: DualNorms | None = None
        self._num_steps = 0
        self._noise = self._upper = self._lower = 0.0

    def add(self, norms: DualNorms) -> Terms | None:
        """Terms of the step: |σ|*² in `trace_cov`, |G|*² in `grad_sq_norm`; None while the bounds lie too far apart."""
        if not all(map(math.isfinite, (norms.noise, norms.upper, norms.lower))):
            return None
        last, is_resolvable = self._last, self.is_resolvable
        self._remember(norms)
        if last is None or not is_resolvable:
            return None
        return Terms(trace_cov=last.noise * norms.noise, grad_sq_norm=last.upper * norms.lower)

    @property
    def is_resolvable(self) -> bool:
        """Whether the steps so far say that the bounds are near enough for the next step to count."""
        return self._num_steps >= MIN_STEPS and self._upper <= WIDEST_BRACKET * self._lower

    def bracket(self) -> Bracket | None:
        """Where the noise scale lies according to the last 40 measured steps or so; None before there are 16."""
        if self._num_steps < MIN_STEPS or not self._upper > 0:
            return None
        low = (self._noise / self._upper) ** 2
        # a tenth of U is what L reaches by chance in few independent coordinates
        is_seen = self._lower > self._upper / 10
        return Bracket(low, (self._noise / self._lower) ** 2 if is_seen else None)

    def _remember(self, norms: DualNorms) -> None:
        self._last = norms
        self._num_steps += 1
        self._noise = DECAY * self._noise + norms.noise
        self._upper = DECAY * self._upper + norms.upper
        self._lower = DECAY * self._lower + norms.lower


def deviation_from_halves(*, distance: float, share_a: float, share_b: float, batch_size: float) -> float:
    """|σ|₁ = Σ σ_i from the ℓ₁ distance of two halves: √(π/2) |a - b|₁ / √(1/n_a + 1/n_b).

    Unbiased where a coordinate's mean over half a batch is Gaussian; for an excess kurtosis κ of one example's gradient
    it is low by κ / (24 N). That is a third of what the root of a variance over many small batches lacks, κ / (8 N).

    Args:
        distance: |a - b|₁ between the mean gradients of the halves.
        share_a: n_a / N, the share of the examples in the first half.
        share_b: n_b / N.
        batch_size: N, examples.

    Raises:
        EstimationError: Unless both halves have examples.

    Source: E|z| = σ √(2/π) of a Gaussian.
    """
    if not (share_a > 0 and share_b > 0 and batch_size > 0):
        raise EstimationError(
            f"both halves of the step need examples, got shares {share_a:g} and {share_b:g} of {batch_size:g}: "
            "use gradient accumulation or more ranks"
        )
    return math.sqrt(math.pi / 2 * batch_size / (1 / share_a + 1 / share_b)) * distance


def deviation_from_roots(*, two: float, first: float, second: float, every: float, num_small_batches: int) -> float:
    """The trace of V^½, one example's deviation, from four that are too small: extrapolated in 1 / degrees of freedom.

    V = E[(g - G)ᵀ(g - G)] estimated with ν degrees of freedom has a root that is low by a series in 1/ν. The halves as
    two points have ν = 1, the small batches within each half about K/2 - 1, and all of them K - 1.

    Args:
        two: Root of the V between the two halves.
        first: Root of the V within the first half, that of the odd small batches.
        second: Root of the V within the second half.
        every: Root of the V of all small batches.
        num_small_batches: K.

    Raises:
        EstimationError: With fewer than 4 small batches.

    Source: Richardson's extrapolation, the jackknife of Quenouille 1956 taken once more.
    """
    freedom_first, freedom_second = (num_small_batches + 1) // 2 - 1, num_small_batches // 2 - 1
    if freedom_second < 1:
        raise EstimationError(
            f"num_small_batches must be at least 4, got {num_small_batches}: use smaller micro-batches, or kind 'sign'"
        )
    last = 1 / (num_small_batches - 1)
    middle = (1 / freedom_first + 1 / freedom_second) / 2
    if middle == 1:
        coarse = (two + first + second) / 3
        return (every - last * coarse) / (1 - last)
    return (
        two * middle * last / ((middle - 1) * (last - 1))
        + (first + second) / 2 * last / ((1 - middle) * (last - middle))
        + every * middle / ((1 - last) * (middle - last))
    )
