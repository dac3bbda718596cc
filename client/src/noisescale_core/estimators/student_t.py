"""Quantiles of Student's t, which the standard library lacks."""

import math
from functools import lru_cache
from statistics import NormalDist

from noisescale_core.errors import DomainError

# Below this many degrees of freedom the asymptotic expansion is worse than 1e-9 and the exact function is cheap.
_EXACT_BELOW = 100


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees_of_freedom: int) -> float:
    """The t with P(T ≤ t) = probability, for T of Student's distribution; relative error below 1e-8.

    Raises:
        DomainError: Unless 0.5 ≤ probability ≤ 0.9999 and degrees_of_freedom ≥ 1.

    Source: Abramowitz & Stegun 1964: distribution function 26.7.3 and 26.7.4 (inverted by bisection), expansion 26.7.5.
    """
    if not 0.5 <= probability <= 0.9999 or degrees_of_freedom < 1:
        raise DomainError(
            f"need 0.5 <= probability <= 0.9999 and degrees_of_freedom >= 1, got {probability} and {degrees_of_freedom}"
        )
    if degrees_of_freedom < _EXACT_BELOW:
        return _invert(probability, degrees_of_freedom)
    return _expansion(probability, degrees_of_freedom)


def _expansion(probability: float, df: int) -> float:
    z = NormalDist().inv_cdf(probability)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + g1 / df + g2 / df**2 + g3 / df**3 + g4 / df**4


def _invert(probability: float, df: int) -> float:
    low, high = 0.0, 2.0
    while _distribution(high, df) < probability:
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        if _distribution(middle, df) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _distribution(t: float, df: int) -> float:
    """P(T ≤ t) for t ≥ 0."""
    angle = math.atan(t / math.sqrt(df))
    cos_sq = math.cos(angle) ** 2
    if df % 2:
        term, total = math.cos(angle), 0.0
        for k in range(1, (df + 1) // 2):
            total += term
            term *= cos_sq * 2 * k / (2 * k + 1)
        return 0.5 + (angle + math.sin(angle) * total) / math.pi
    term, total = 1.0, 0.0
    for k in range(1, df // 2 + 1):
        total += term
        term *= cos_sq * (2 * k - 1) / (2 * k)
    return 0.5 + math.sin(angle) * total / 2
