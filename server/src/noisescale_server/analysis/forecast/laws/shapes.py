"""Shapes that a noise scale or a critical batch may have over the loss or over progress, on the log scale.

A power law is what Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3 found over the loss. Merrill et al. 2025,
arXiv:2505.23971, found growth that levels off. Over steps and examples a plateau is φ∞ (1 - exp(-t / T)).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

NEAREST_LIMIT = 0.999
"""An irreducible loss above this share of the lowest loss seen would be an infinite noise scale next to it."""

TINY = 1e-300


class Axis(StrEnum):
    """What a law is over."""

    LOSS = "loss"
    STEPS = "steps"
    EXAMPLES = "examples"


class ShapeName(StrEnum):
    """A family of curves."""

    CONSTANT = "constant"
    POWER = "power"
    POWER_ABOVE_LIMIT = "power_above_irreducible_loss"
    PLATEAU = "plateau"


@dataclass(frozen=True, slots=True)
class Shape:
    """A curve of log φ over x, up to its parameters.

    Attributes:
        name: Its name.
        num_parameters: P.
        log_value: log φ at x, [N], from the parameters, [P].
        starts: Parameters to begin a search from, for x and log φ, each [N].
    """

    name: ShapeName
    num_parameters: int
    log_value: Callable[[Array, Array], Array]
    starts: Callable[[Array, Array], list[Array]]


def shapes(axis: Axis, lowest: float) -> tuple[Shape, ...]:
    """The shapes to compare over an axis.

    Args:
        axis: What x is.
        lowest: The smallest x seen; an irreducible loss lies below.
    """
    constant = Shape(ShapeName.CONSTANT, 1, _constant, lambda _, y: [np.array([y.mean()])])
    power = Shape(ShapeName.POWER, 2, _power, lambda x, y: [_line(x, y)])
    if axis is not Axis.LOSS:
        return constant, power, Shape(ShapeName.PLATEAU, 2, _saturating, _starts_of_saturating)

    def above_limit(parameters: Array, x: Array) -> Array:
        limit = irreducible_loss(parameters, lowest)
        return _power(parameters[:2], np.maximum(x - limit, TINY))

    def starts_above_limit(x: Array, y: Array) -> list[Array]:
        logits = (-3.0, 0.0, 2.0)
        limits = [NEAREST_LIMIT * lowest * float(expit(logit)) for logit in logits]
        return [np.append(_line(x - limit, y), logit) for limit, logit in zip(limits, logits, strict=True)]

    return (
        constant,
        power,
        Shape(ShapeName.POWER_ABOVE_LIMIT, 3, above_limit, starts_above_limit),
        Shape(ShapeName.PLATEAU, 3, _levelling, _starts_of_levelling),
    )


def irreducible_loss(parameters: Array, lowest: float) -> float:
    """L∞ of a power law above it."""
    return NEAREST_LIMIT * lowest * float(expit(parameters[2]))


def _constant(parameters: Array, x: Array) -> Array:
    return np.full(x.shape, parameters[0])


def _power(parameters: Array, x: Array) -> Array:
    """The straight line a + b log x."""
    found: Array = parameters[0] + parameters[1] * np.log(x)
    return found


def _saturating(parameters: Array, x: Array) -> Array:
    """log(φ∞ (1 - exp(-x / T))), from log φ∞ and log T."""
    found: Array = parameters[0] + np.log(
        np.maximum(-np.expm1(-x * np.exp(-np.clip(parameters[1], -600.0, 600.0))), TINY)
    )
    return found


def _levelling(parameters: Array, x: Array) -> Array:
    """log(φ∞ (1 - exp(-(L0 / L)^k))), from log φ∞, log L0 and log k: a power law far above L0, level below."""
    exponent = np.exp(np.clip(parameters[2], -20.0, 6.0)) * (parameters[1] - np.log(x))
    found: Array = parameters[0] + np.log(np.maximum(-np.expm1(-np.exp(np.clip(exponent, -600.0, 600.0))), TINY))
    return found


def _line(x: Array, y: Array) -> Array:
    slope, start = np.polyfit(np.log(x), y, 1) if np.ptp(x) > 0 else (0.0, y.mean())
    return np.array([start, slope])


def _starts_of_saturating(x: Array, y: Array) -> list[Array]:
    return [np.array([y.max(), np.log(place)]) for place in np.quantile(x, [0.1, 0.5, 1.0])]


def _starts_of_levelling(x: Array, y: Array) -> list[Array]:
    steepness = max(-float(_line(x, y)[1]), 0.5)
    return [np.array([y.max(), np.log(place), np.log(steepness)]) for place in np.quantile(x, [0.1, 0.5])]
