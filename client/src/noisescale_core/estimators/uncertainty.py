"""Intervals for |G|², tr Σ and their ratio, and the three states a noise scale can be in.

The interval is Fieller's: the set of ratios φ that the t-test of E[X] - φ E[Y] = 0 does not reject. It is bounded
exactly when |G|² differs significantly from 0; otherwise only a lower bound is known, and that is what is reported.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.signal import normal_deviate
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.windows import RESOLVED_Z, WindowSums, updates_needed

CONFIRMED_Z = 4.0
"""z of a window's own from which it confirms the resolved windows before it.

A higher bar would choose the windows in which |G|² or its spread came out too good."""

ALONE_Z = 7.0
"""Normal deviate from which a window shows by itself what its run, or the windows before it, do not.

One huge |G|² in a spike drowns the sums that it is in for long."""

WINDOWS_BEFORE = 4
"""How many windows' length before a window say whether it can be resolved."""

SKEWNESS_ALLOWANCE = 0.5
"""By this share of 1 / N the quantile grows at N updates: |G|² is skewed to the right.

The t-interval of N values of skewness γ covers as if its quantile were too small by about 1.08 γ² / N (Hall 1992, "The
Bootstrap and Edgeworth Expansion", section 2.6); γ² is 8 / d_eff where noise dominates and 0.5 for d_eff = 16."""

ROUNDING = 2.0**-30
"""Share of |G|² from which tr Σ is more than rounding: no sum of float32 gradients is exact to 1e-9.

So no noise scale below a billionth of an example is measured; small batches that are equal would give one."""

MIN_BLOCKS = 8
"""Fewer blocks give no usable covariance."""


class State(StrEnum):
    """How much a noise scale may be relied on."""

    RESOLVED = "resolved"
    TENTATIVE = "tentative"
    UNRESOLVED = "unresolved"


class Reason(StrEnum):
    """Why a noise scale is not resolved."""

    NO_ESTIMATES = "no_estimates"
    TOO_FEW_UPDATES = "too_few_updates"
    INTERVAL_UNBOUNDED = "interval_unbounded"
    NO_SIGNAL_YET = "no_signal_yet"
    GRAD_SQ_NORM_NOT_POSITIVE = "grad_sq_norm_not_positive"
    TRACE_COV_NOT_POSITIVE = "trace_cov_not_positive"
    TRACE_COV_OF_ROUNDING = "trace_cov_of_rounding"


_WITHOUT_BOUND = (Reason.TRACE_COV_NOT_POSITIVE, Reason.GRAD_SQ_NORM_NOT_POSITIVE, Reason.TRACE_COV_OF_ROUNDING)


@dataclass(frozen=True, slots=True)
class NoiseScaleEstimate:
    """B_simple = tr Σ / |G|² of a window, with its interval and state.

    Attributes:
        state: Resolved: interval bounded, and both terms known to a fifth (`estimate`). Tentative: interval bounded
            only. Unresolved: no value.
        value: Ratio of sums in examples; None while unresolved.
        low: Lower end of the interval in examples; while unresolved the lower bound, None where that is missing too.
        high: Upper end in examples; None while unresolved.
        level: Confidence level of the interval.
        z: |G|² divided by its standard error; None without enough blocks.
        reason: Why it is unresolved.
        updates_needed: Updates like these, in all, after which z would reach 5: N (5 / z)², z being that of the windows
            before where they are given; None once resolved and where z ≤ 0.
        num_updates: Updates in the window.
        num_blocks: Blocks in the window.
        trace_cov: Mean tr Σ over the updates.
        trace_cov_se: Its standard error.
        grad_sq_norm: Mean |G|² over the updates; may be negative.
        grad_sq_norm_se: Its standard error.
    """

    state: State
    value: float | None
    low: float | None
    high: float | None
    level: float
    z: float | None
    reason: Reason | None
    updates_needed: int | None
    num_updates: int
    num_blocks: int
    trace_cov: float | None
    trace_cov_se: float | None
    grad_sq_norm: float | None
    grad_sq_norm_se: float | None


class MeansOfTerms(NamedTuple):
    """Means a = tr Σ, c = |G|² over a window and the covariance of these two means.

    A tuple, as one is made for every point of every chart: a frozen dataclass takes five times as long to make.
    """

    a: float
    c: float
    v_aa: float
    v_ac: float
    v_cc: float


def means_of_terms(window: WindowSums) -> MeansOfTerms:
    """Weighted means of the two terms and the covariance of those means, from the spread of the blocks.

    With block weights w = n / Σn the covariance is m / (m - 1) · Σ w² (x - a)(y - c); equal blocks give the sample
    covariance of block means divided by m.

    Raises:
        EstimationError: With fewer than two blocks.
    """
    m, n, x, y, xx, yy, xy, nx, ny, nn = window
    if m < 2 or n <= 0:
        raise EstimationError(f"num_blocks must be at least 2 to have a spread, got {m}: wait for more updates")
    a, c = x / n, y / n
    scale = m / ((m - 1) * n * n)
    v_aa = scale * (xx - 2 * a * nx + a * a * nn)
    v_cc = scale * (yy - 2 * c * ny + c * c * nn)
    v_ac = scale * (xy - a * ny - c * nx + a * c * nn)
    # Rounding can leave a tiny negative sum of squares where all blocks are equal.
    return MeansOfTerms(a, c, v_aa if v_aa > 0 else 0.0, v_ac, v_cc if v_cc > 0 else 0.0)


def fieller(means: MeansOfTerms, quantile: float) -> tuple[float | None, float | None]:
    """The ends of Fieller's set for a / c within φ ≥ 0; high is None while the set is unbounded above.

    Solves (c² - q² V_cc) φ² - 2 (a c - q² V_ac) φ + (a² - q² V_aa) ≤ 0. Both None: every φ ≥ 0 is in the set, or none.

    Source: Fieller 1954, "Some problems in interval estimation", JRSS B 16(2).
    """
    a, c, v_aa, v_ac, v_cc = means
    q_sq = quantile * quantile
    quadratic = c**2 - q_sq * v_cc
    half_linear = a * c - q_sq * v_ac
    constant = a**2 - q_sq * v_aa
    discriminant = half_linear**2 - quadratic * constant
    if discriminant < 0:
        return None, None
    # One root from the sum without cancellation, the other from the product of both.
    far = half_linear + math.copysign(math.sqrt(discriminant), half_linear)
    near = constant / far if far else 0.0
    if quadratic == 0:
        return (near if near > 0 else None), None
    low, high = (near, far / quadratic) if near <= far / quadratic else (far / quadratic, near)
    if quadratic > 0:
        return (low if low > 0 else 0.0, high) if high > 0 else (None, None)
    return (high if high > 0 else None), None


def estimate(
    window: WindowSums, *, level: float = 0.95, has_signal: bool = True, before: WindowSums | None = None
) -> NoiseScaleEstimate:
    """The noise scale of a window: value, interval and state.

    The interval uses the t quantile with m - 1 degrees of freedom, m blocks, and an allowance for skewness. It is the
    set of the two-sided test, cut to φ ≥ 0, where a ratio of a trace and a squared norm must lie.

    People look at every step and act when a number first looks good. A window that says itself whether it is resolved
    is then a lucky one: half of such intervals miss the truth. So the windows before it say it: their |G|² and tr Σ,
    over as many updates as the window has, must both be 5 standard errors from 0, and the window's own z at least 4.
    A window beyond doubt by itself is resolved also where a spike lies before it.

    Args:
        window: Sums over at least 8 blocks; with fewer the answer is unresolved.
        level: Confidence level, 0 < level < 1.
        has_signal: Whether the run so far has shown a gradient (`signal.has_signal`); if not, there is no value unless
            the window shows one beyond doubt by itself.
        before: Sums over the four windows' length before the window, or what there is of it; None: not known, the
            window's own z ≥ 5 decides.
    """
    if window.num_blocks < MIN_BLOCKS:
        return _too_few(window, level)
    num_blocks, num_updates = window.num_blocks, window.num_updates
    means = means_of_terms(window)
    a, c, v_aa, _, v_cc = means
    z = _z(c, v_cc)
    quantile = t_quantile(0.5 + level / 2, num_blocks - 1) * (1 + SKEWNESS_ALLOWANCE / num_updates)
    low, high = fieller(means, quantile)
    reason = _reason(means, high)
    if reason is None and not has_signal and not _is_clear(window):
        reason = Reason.NO_SIGNAL_YET
    foreseen = z if before is None else _foreseen(window, before)
    is_resolved = z >= CONFIRMED_Z and foreseen is not None and (foreseen >= RESOLVED_Z or _is_clear(window))
    state = State.UNRESOLVED if reason else State.RESOLVED if is_resolved else State.TENTATIVE
    # in the order of the fields, as one is made for every point of every chart: by their names it takes a quarter more
    return NoiseScaleEstimate(
        state,
        None if reason else a / c,
        None if reason in _WITHOUT_BOUND and high else low,
        None if reason else high,
        level,
        z if math.isfinite(z) else None,
        reason,
        None if state is State.RESOLVED else _needed(window, z if foreseen is None else foreseen),
        round(num_updates),
        num_blocks,
        a,
        math.sqrt(v_aa),
        c,
        math.sqrt(v_cc),
    )


def _foreseen(window: WindowSums, before: WindowSums) -> float | None:
    """The smaller z of |G|² and tr Σ to expect after these updates; None while they are fewer than the window's."""
    if before.num_blocks < MIN_BLOCKS or before.num_updates < window.num_updates:
        return None
    means = means_of_terms(before)
    scale = before.num_updates / window.num_updates
    return min(_z(means.c, means.v_cc * scale), _z(means.a, means.v_aa * scale))


def _is_clear(window: WindowSums) -> bool:
    """Whether the window shows a gradient beyond doubt by itself."""
    return normal_deviate(window.num_blocks, window.grad_sq_norm, window.grad_sq_norm_sq) >= ALONE_Z


def _needed(window: WindowSums, z: float) -> int | None:
    """Updates that the window would need; no fewer than it has, as it is not resolved."""
    needed = updates_needed(window.num_updates, z)
    return None if needed is None else max(needed, round(window.num_updates))


def _z(mean: float, variance: float) -> float:
    if variance > 0:
        return mean / math.sqrt(variance)
    return math.copysign(math.inf, mean)


def _reason(means: MeansOfTerms, high: float | None) -> Reason | None:
    if means.a <= 0:
        return Reason.TRACE_COV_NOT_POSITIVE
    if means.c <= 0:
        return Reason.GRAD_SQ_NORM_NOT_POSITIVE
    if means.a < ROUNDING * means.c:
        return Reason.TRACE_COV_OF_ROUNDING
    if high is None:
        return Reason.INTERVAL_UNBOUNDED
    return None


def _too_few(window: WindowSums, level: float) -> NoiseScaleEstimate:
    n = window.num_updates
    return NoiseScaleEstimate(
        state=State.UNRESOLVED,
        value=None,
        low=None,
        high=None,
        level=level,
        z=None,
        reason=Reason.TOO_FEW_UPDATES if window.num_blocks else Reason.NO_ESTIMATES,
        updates_needed=None,
        num_updates=round(n),
        num_blocks=window.num_blocks,
        trace_cov=window.trace_cov / n if n else None,
        trace_cov_se=None,
        grad_sq_norm=window.grad_sq_norm / n if n else None,
        grad_sq_norm_se=None,
    )


NOTHING_MEASURED = estimate(WindowSums())
"""The answer without a single estimate."""
