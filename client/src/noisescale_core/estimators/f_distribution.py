"""Tail of the F distribution, which the standard library lacks."""

import math

from noisescale_core.errors import DomainError

_TINY = 1e-300
_PRECISION = 1e-14
_MOST_TERMS = 100_000


def upper_tail(f: float, numerator_freedom: float, denominator_freedom: float) -> float:
    """P(F ≥ f) for F with these degrees of freedom, which need not be whole; relative error below 1e-9.

    Raises:
        DomainError: Unless f ≥ 0 and both degrees of freedom are positive.

    Source: P(F ≥ f) = I_x(ν₂ / 2, ν₁ / 2) at x = ν₂ / (ν₂ + ν₁ f), Abramowitz & Stegun 1964, 26.6.2.
    """
    if not (f >= 0 and numerator_freedom > 0 and denominator_freedom > 0):
        raise DomainError(
            f"need f >= 0 and positive degrees of freedom, got {f}, {numerator_freedom}, {denominator_freedom}"
        )
    whole = denominator_freedom + numerator_freedom * f
    if math.isinf(whole):
        return 0.0
    below, above = denominator_freedom / whole, numerator_freedom * f / whole
    return _incomplete_beta(below, above, denominator_freedom / 2, numerator_freedom / 2)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b), with rest = 1 - x given so that neither end loses digits."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(rest, x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(log_front) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 26.5.8 of Abramowitz & Stegun 1964 from its top, by Lentz's ratios."""
    value = numerator = 1.0
    denominator = 0.0
    for term in range(1, _MOST_TERMS):
        m = term // 2
        if term % 2:
            coefficient = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            coefficient = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / (1 + coefficient * denominator or _TINY)
        numerator = 1 + coefficient / numerator or _TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return value
