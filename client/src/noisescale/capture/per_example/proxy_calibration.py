"""How the noise scale of the normalisations relates to that of the whole model: `layer_norm_proxy`, calibrated.

The noise scale of the normalisations' parameters rises and falls with the whole model's (Gray et al. 2024,
arXiv:2411.00999, section 5: correlation of 0.99 in transformers), but is not equal to it. At steps where both were
measured, the proxy by per-example norms and the whole model by micro-batches, their ratio is estimated. Departure: the
paper fits a regression to smoothed ratios; here all sums add and the ratio is taken last.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import MIN_BLOCKS, MeansOfTerms, fieller

PROXY_TRACE, PROXY_GRAD, FULL_TRACE, FULL_GRAD = range(4)
"""Places of the four terms in the sums."""


class CalibrationState(StrEnum):
    """Whether a proxy may be read as the model's noise scale."""

    CALIBRATED = "calibrated"
    UNCALIBRATED = "uncalibrated"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Noise scale of the whole model ÷ that of the proxy.

    Attributes:
        state: Calibrated: the interval is bounded on both sides.
        ratio: None while uncalibrated.
        low: Lower end of its interval; None while uncalibrated.
        high: Upper end; None while uncalibrated.
        level: Confidence level of the interval.
        num_pairs: Steps at which both were measured.
    """

    state: CalibrationState
    ratio: float | None
    low: float | None
    high: float | None
    level: float
    num_pairs: int


@dataclass(frozen=True, slots=True)
class ProxySums:
    """Additive sums over the steps at which the proxy and the whole model were both measured.

    Attributes:
        num_pairs: Steps.
        sums: Σ of tr Σ and |G|² of the proxy, then of the model.
        products: Σ of the products of any two of these four, row by row.
    """

    num_pairs: int = 0
    sums: tuple[float, ...] = (0.0,) * 4
    products: tuple[float, ...] = (0.0,) * 16

    @classmethod
    def from_pair(cls, *, proxy: Terms, full: Terms) -> "ProxySums":
        """Sums of one step.

        Args:
            proxy: Terms of the normalisations' parameters.
            full: Terms of the whole model, of the same step.
        """
        values = (proxy.trace_cov, proxy.grad_sq_norm, full.trace_cov, full.grad_sq_norm)
        return cls(1, values, tuple(x * y for x in values for y in values))

    def __add__(self, other: "ProxySums") -> "ProxySums":
        return ProxySums(
            self.num_pairs + other.num_pairs,
            tuple(x + y for x, y in zip(self.sums, other.sums, strict=True)),
            tuple(x + y for x, y in zip(self.products, other.products, strict=True)),
        )


def calibrate(sums: ProxySums, *, level: float = 0.95) -> Calibration:
    """The ratio ρ = φ_full ÷ φ_proxy with Fieller's interval; uncalibrated until that is bounded and above 0.

    With means a, c of tr Σ and |G|², ρ = a_full c_proxy ÷ (c_full a_proxy). Fieller's set is that of the two products,
    whose covariance follows from that of the four means to first order: the same steps made all four, so most of their
    noise is common and drops out.

    Args:
        sums: Of at least 8 steps, each a block by itself: an interval from here takes steps to be independent.
        level: Confidence level, 0 < level < 1.
    """
    m = sums.num_pairs
    uncalibrated = Calibration(CalibrationState.UNCALIBRATED, None, None, None, level, m)
    if m < MIN_BLOCKS:
        return uncalibrated
    means = [value / m for value in sums.sums]
    a_proxy, c_proxy, a_full, c_full = means
    if min(a_proxy, a_full, c_proxy, c_full) <= 0:
        return uncalibrated
    upper = _gradient({FULL_TRACE: c_proxy, PROXY_GRAD: a_full})
    lower = _gradient({FULL_GRAD: a_proxy, PROXY_TRACE: c_full})
    covariance = _covariance_of_means(sums, means)
    products = MeansOfTerms(
        a=a_full * c_proxy,
        c=c_full * a_proxy,
        v_aa=max(0.0, _bilinear(upper, covariance, upper)),
        v_ac=_bilinear(upper, covariance, lower),
        v_cc=max(0.0, _bilinear(lower, covariance, lower)),
    )
    low, high = fieller(products, t_quantile(0.5 + level / 2, m - 1))
    if low is None or high is None or not 0 < low <= high < math.inf:
        return uncalibrated
    return Calibration(CalibrationState.CALIBRATED, products.a / products.c, low, high, level, m)


def _gradient(entries: dict[int, float]) -> list[float]:
    return [entries.get(index, 0.0) for index in range(4)]


def _covariance_of_means(sums: ProxySums, means: Sequence[float]) -> list[list[float]]:
    m = sums.num_pairs
    return [[(sums.products[4 * i + j] / m - means[i] * means[j]) / (m - 1) for j in range(4)] for i in range(4)]


def _bilinear(left: Sequence[float], matrix: Sequence[Sequence[float]], right: Sequence[float]) -> float:
    return sum(x * matrix[i][j] * y for i, x in enumerate(left) for j, y in enumerate(right))
