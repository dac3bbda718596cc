"""Curves that the best learning rate may follow, log ε over log B.

Sources: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6 and appendix A.2, eq. A.3 (saturating); Li et al. 2024,
arXiv:2405.14578, eq. 2 (surge); Malladi et al. 2022, arXiv:2205.10287 (square root).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class CurveName(StrEnum):
    """A family of curves."""

    SQUARE_ROOT = "square_root"
    POWER = "power"
    SATURATING_SGD = "saturating_linear"
    SATURATING = "saturating"
    SURGE = "surge"


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve up to its parameters.

    Attributes:
        name: Its name.
        formula: In symbols.
        parameters: Names of the parameters as they are shown.
        log_rate: log ε from the parameters, [P], and log B, [N].
        is_log: Of each parameter, whether it is kept as a log.
    """

    name: CurveName
    formula: str
    parameters: tuple[str, ...]
    is_log: tuple[bool, ...]
    log_rate: Callable[[Array, Array], Array]


def _square_root(p: Array, log_batch: Array) -> Array:
    found: Array = p[0] + 0.5 * log_batch
    return found


def _power(p: Array, log_batch: Array) -> Array:
    found: Array = p[0] + p[1] * log_batch
    return found


def _saturating(p: Array, log_batch: Array) -> Array:
    exponent = p[2] if p.size > 2 else 1.0
    found: Array = p[0] - exponent * np.logaddexp(0.0, p[1] - log_batch)
    return found


def _surge(p: Array, log_batch: Array) -> Array:
    half = (p[1] - log_batch) / 2
    found: Array = p[0] + np.log(2) - np.logaddexp(half, -half)
    return found


CURVES = (
    Curve(CurveName.SQUARE_ROOT, "ε = ε_1 √B", ("lr_at_one",), (True,), _square_root),
    Curve(CurveName.POWER, "ε = ε_1 B^p", ("lr_at_one", "exponent"), (True, False), _power),
    Curve(CurveName.SATURATING_SGD, "ε = ε* / (1 + B*/B)", ("limit", "batch_scale"), (True, True), _saturating),
    Curve(
        CurveName.SATURATING,
        "ε = ε* / (1 + B*/B)^α",
        ("limit", "batch_scale", "exponent"),
        (True, True, False),
        _saturating,
    ),
    Curve(CurveName.SURGE, "ε = 2 ε_max / (√(B_n/B) + √(B/B_n))", ("peak", "peak_batch"), (True, True), _surge),
)
