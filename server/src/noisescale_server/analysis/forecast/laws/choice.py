"""Whether observations tell a law that goes on growing from one that levels off, or from no change at all.

By AICc (Burnham & Anderson 2002, section 2.4), with as many observations as the correlation within clusters leaves.
Growth over the loss and growth over the data are one and the same inside a single run: neither explains the other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from noisescale_server.analysis.forecast.laws.shape_fit import ShapeFit
from noisescale_server.analysis.forecast.laws.shapes import ShapeName

Verdict = Literal["changes_on", "levels_off", "constant", "cannot_tell"]

SUBSTANTIAL_SUPPORT = 2.0
"""A shape whose AICc is no farther from the best still has support. Source: Burnham & Anderson 2002, section 2.6."""

MEANING: Mapping[ShapeName, Verdict] = {
    ShapeName.CONSTANT: "constant",
    ShapeName.POWER: "changes_on",
    ShapeName.POWER_ABOVE_LIMIT: "changes_on",
    ShapeName.PLATEAU: "levels_off",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shape in the comparison.

    Attributes:
        shape: Its name.
        num_parameters: Of the curve.
        aicc_difference: To the best shape; None where there are too few observations for its parameters.
        has_support: Whether that is at most 2, or AIC without the correction for few observations prefers it.
    """

    shape: ShapeName
    num_parameters: int
    aicc_difference: float | None
    has_support: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Which shape the observations speak for.

    Attributes:
        verdict: What the shapes with support agree on; `cannot_tell` where they do not.
        shape: The best of them; where they do not agree, the one that goes on.
        candidates: All, the best first.
        num_effective: Observations that are left when those of one cluster repeat each other.
        explanation: In a sentence.
    """

    verdict: Verdict
    shape: ShapeName
    candidates: tuple[Candidate, ...]
    num_effective: float
    explanation: str


def choose(fits: Sequence[ShapeFit], cluster_sizes: Sequence[int]) -> Choice:
    """The choice among shapes that were fitted to the same observations.

    Args:
        fits: One for each shape, the power law among them.
        cluster_sizes: Observations in each cluster.
    """
    steadiest = min(fits, key=lambda fit: fit.excess_variance)
    num_effective = _num_effective(steadiest, cluster_sizes)
    scores = {fit.shape.name: _aicc(fit, steadiest, num_effective) for fit in fits}
    best = min(fits, key=lambda fit: _or_infinite(scores[fit.shape.name]))
    plain = {fit.shape.name: _aic(fit, steadiest, num_effective) for fit in fits}
    candidates = sorted(
        (
            _candidate(
                fit,
                _difference(scores[fit.shape.name], scores[best.shape.name]),
                is_better_without_correction=plain[fit.shape.name] < plain[best.shape.name],
            )
            for fit in fits
        ),
        key=lambda one: _or_infinite(one.aicc_difference),
    )
    supported = [one for one in candidates if one.has_support]
    meanings = {MEANING[one.shape] for one in supported}
    verdict = meanings.pop() if len(meanings) == 1 else "cannot_tell"
    going_on = next((one.shape for one in supported if MEANING[one.shape] == "changes_on"), ShapeName.POWER)
    shape = going_on if verdict == "cannot_tell" else supported[0].shape
    return Choice(verdict, shape, tuple(candidates), num_effective, _explained(verdict, supported))


def _difference(score: float | None, least: float | None) -> float | None:
    return None if score is None or least is None else score - least


def _or_infinite(score: float | None) -> float:
    return math.inf if score is None else score


def _candidate(fit: ShapeFit, difference: float | None, *, is_better_without_correction: bool) -> Candidate:
    # with few observations the correction alone would exclude a shape that fits better
    is_near = difference is not None and difference <= SUBSTANTIAL_SUPPORT
    has_support = is_near or is_better_without_correction
    return Candidate(fit.shape.name, fit.shape.num_parameters, difference, has_support)


def _aicc(fit: ShapeFit, steadiest: ShapeFit, num_effective: float) -> float | None:
    """AICc of normal errors of unknown size, weighted alike for every shape; None without enough observations."""
    num_fitted = fit.shape.num_parameters + 1
    if num_effective <= num_fitted + 1:
        return None
    correction = 2 * num_fitted * (num_fitted + 1) / (num_effective - num_fitted - 1)
    return _aic(fit, steadiest, num_effective) + correction


def _aic(fit: ShapeFit, steadiest: ShapeFit, num_effective: float) -> float:
    mean_square = float(steadiest.weights @ fit.residuals**2) / fit.residuals.size
    return num_effective * math.log(max(mean_square, 1e-300)) + 2 * (fit.shape.num_parameters + 1)


def _num_effective(fit: ShapeFit, cluster_sizes: Sequence[int]) -> float:
    mean_size = float(np.square(cluster_sizes).sum() / np.sum(cluster_sizes))
    return fit.residuals.size / (1 + (mean_size - 1) * fit.errors.correlation)


def _explained(verdict: Verdict, supported: Sequence[Candidate]) -> str:
    names = " and ".join(_WORDS[one.shape] for one in supported)
    match verdict:
        case "changes_on":
            return f"Over the range seen it follows {names}; a plateau or a constant is worse by AICc."
        case "levels_off":
            return f"Over the range seen it follows {names}: more of the same growth is not to be expected."
        case "constant":
            return "Over the range seen it does not change beyond its errors."
        case _:
            return f"The data cannot tell {names or 'the shapes'} apart: look again later in the run."


_WORDS = {
    ShapeName.CONSTANT: "a constant",
    ShapeName.POWER: "a power law",
    ShapeName.POWER_ABOVE_LIMIT: "a power law above an irreducible loss",
    ShapeName.PLATEAU: "a plateau",
}
