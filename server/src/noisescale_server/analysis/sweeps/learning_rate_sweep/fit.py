"""The curves fitted to the best learning rates of a sweep, and whether the data can tell them apart.

Least squares of log ε with the errors that the grid leaves; AICc for known errors, and where every curve misses by more
than they allow, all errors are taken larger by one factor (quasi-likelihood: Burnham & Anderson 2002, section 2.5).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import stdtrit

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting.wording import batch_sizes
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate
from noisescale_server.analysis.sweeps.learning_rate_sweep.curves import CURVES, Array, Curve, CurveName

FEWEST_BATCH_SIZES = 3
EXCLUDED_BEYOND = 6.0
"""A curve whose AICc is farther from the best is excluded; nearer, it stays possible. With the usual 2, sweeps planted
with α = 0.6 were said to follow the wrong curve alone in half of the cases. Burnham, Anderson & Huyvaert 2011,
Behavioral Ecology and Sociobiology 65, call differences up to 7 plausible. A curve that misses less than the best is
never excluded: with few batch sizes AICc would do so for its parameters alone."""

SPECIAL_CASES = {CurveName.SQUARE_ROOT: CurveName.POWER, CurveName.SATURATING_SGD: CurveName.SATURATING}
"""A curve that another one holds for one exponent: both possible is no disagreement."""

TIE = 1e-6
"""Sums of squares this close are equal: a curve that holds the best one as a special case fits at least as well."""

WIDEST = math.log(1e4)
"""An end beyond this factor is no bound."""

EXPONENTS = np.linspace(0.02, 3.0, 150)
"""Values of α that its profile looks at."""

BATCH_SCALE_REACH = 12.0
"""How far beyond the batch sizes log B* is looked for: farther, the curve is a power law or a constant."""


@dataclass(frozen=True, slots=True)
class RateCurve:
    """One curve through the best rates.

    Attributes:
        curve: The curve.
        parameters: As fitted, logs where the curve keeps logs, [P].
        covariance: Of them, [P, P].
        estimates: By name, with intervals; an end is None where the data set no bound.
        rms: Root mean square of log ε about the curve.
        aicc_difference: To the best curve; None with too few batch sizes for its parameters.
        has_support: Whether that is at most 6, or the curve misses less than the best one.
        freedom: Batch sizes less parameters.
        level: Confidence level.
    """

    curve: Curve
    parameters: Array
    covariance: Array
    estimates: dict[str, Estimate]
    rms: float
    aicc_difference: float | None
    has_support: bool
    freedom: int
    level: float

    def at(self, batch_size: float) -> Estimate:
        """The best learning rate at a batch size, with the band of the curve."""
        log_batch = np.array([math.log(batch_size)])
        value = float(self.curve.log_rate(self.parameters, log_batch)[0])
        slope = _derivatives(self.curve, self.parameters, log_batch)[0]
        half = _quantile(self.level, self.freedom) * math.sqrt(max(float(slope @ self.covariance @ slope), 0.0))
        return _exponential(value, half, self.level)


@dataclass(frozen=True, slots=True)
class RateFits:
    """All curves, the best first.

    Attributes:
        curves: With AICc.
        used: Batch sizes in the fit; optima at the edge of their grid are left out.
        can_tell: Whether a single curve has support.
        explanation: In a sentence.
        error_factor: By which the errors of the grid were multiplied, at least 1.
    """

    curves: tuple[RateCurve, ...]
    used: tuple[float, ...]
    can_tell: bool
    explanation: str
    error_factor: float

    def of(self, name: CurveName) -> RateCurve | None:
        """The fit of one curve; None where there are too few batch sizes for it."""
        return next((one for one in self.curves if one.curve.name is name), None)


@dataclass(frozen=True, slots=True)
class NoRateFits:
    """Too few best rates are known; the explanation says what is missing."""

    explanation: str


def fit_rates(rates: Sequence[BestRate], *, level: float = 0.95) -> RateFits | NoRateFits:
    """The curves through the best rates whose both sides were tried."""
    used = [rate for rate in rates if rate.log_standard_error is not None]
    if len(used) < FEWEST_BATCH_SIZES:
        return NoRateFits(
            f"{len(used)} of {batch_sizes(len(rates))} {'has' if len(rates) == 1 else 'have'} a best learning rate "
            "inside the grid, and a curve needs "
            f"{FEWEST_BATCH_SIZES}: try rates beyond the best one, by factors of 2."
        )
    log_batch = np.log([rate.batch_size for rate in used])
    log_rate = np.log([rate.lr for rate in used])
    errors = np.array([rate.log_standard_error for rate in used], dtype=float)
    found = {
        curve.name: (curve, _search(curve, log_batch, log_rate, errors))
        for curve in CURVES
        if len(curve.parameters) < len(used) or len(curve.parameters) <= FEWEST_BATCH_SIZES - 1
    }
    squares = {name: _squares(curve, p, log_batch, log_rate, errors) for name, (curve, p) in found.items()}
    factor = _error_factor(found, squares, len(used))
    scores = {
        name: _aicc(squares[name] / factor**2, len(curve.parameters), len(used)) for name, (curve, _) in found.items()
    }
    best = min(found, key=lambda name: _or_infinite(scores[name]))
    data = (log_batch, log_rate, factor * errors)
    curves = []
    for name, (curve, p) in found.items():
        difference = _difference(scores[name], scores[best])
        is_near = difference is not None and difference <= EXCLUDED_BEYOND
        has_support = is_near or squares[name] <= squares[best] + TIE
        curves.append(_rate_curve(curve, p, data, difference, has_support=has_support, level=level))
    curves.sort(key=lambda one: _or_infinite(one.aicc_difference))
    supported = [one for one in curves if one.has_support]
    return RateFits(
        curves=tuple(curves),
        used=tuple(rate.batch_size for rate in used),
        can_tell=_num_kinds(supported) == 1,
        explanation=_explained(supported),
        error_factor=factor,
    )


def _search(curve: Curve, log_batch: Array, log_rate: Array, errors: Array) -> Array:
    low, high = _bounds(curve, log_batch)
    found = [
        least_squares(
            lambda p: (curve.log_rate(p, log_batch) - log_rate) / errors,
            np.clip(start, low + 1e-6, high - 1e-6),
            bounds=(low, high),
            x_scale="jac",
        )
        for start in _starts(curve, log_batch, log_rate)
    ]
    best: Array = min(found, key=lambda one: float(one.cost)).x
    return best


def _bounds(curve: Curve, log_batch: Array) -> tuple[Array, Array]:
    reach = (float(log_batch.min()) - BATCH_SCALE_REACH, float(log_batch.max()) + BATCH_SCALE_REACH)
    ends = {"batch_scale": reach, "peak_batch": reach, "exponent": (-5.0, 5.0)}
    if curve.name is CurveName.SATURATING:
        ends["exponent"] = (float(EXPONENTS[0]), float(EXPONENTS[-1]))
    low, high = zip(*(ends.get(name, (-300.0, 300.0)) for name in curve.parameters), strict=True)
    return np.array(low), np.array(high)


def _starts(curve: Curve, log_batch: Array, log_rate: Array) -> list[Array]:
    slope, start = np.polyfit(log_batch, log_rate, 1)
    if len(curve.parameters) == 1:
        return [np.array([float(np.mean(log_rate - 0.5 * log_batch))])]
    if curve.name is CurveName.POWER:
        return [np.array([start, slope])]
    scales = np.quantile(log_batch, [0.0, 0.5, 1.0])
    tail = [max(float(slope), 0.3)] if len(curve.parameters) == 3 else []
    return [np.array([float(log_rate.max()), float(scale), *tail]) for scale in scales]


def _squares(curve: Curve, p: Array, log_batch: Array, log_rate: Array, errors: Array) -> float:
    return float((((curve.log_rate(p, log_batch) - log_rate) / errors) ** 2).sum())


def _error_factor(found: dict[CurveName, tuple[Curve, Array]], squares: dict[CurveName, float], count: int) -> float:
    """At least 1: by how much the curve that fits best misses beyond the errors."""
    per_freedom = [
        squares[name] / (count - len(curve.parameters))
        for name, (curve, _) in found.items()
        if count > len(curve.parameters)
    ]
    return max(1.0, math.sqrt(min(per_freedom)))


def _aicc(squares: float, num_parameters: int, count: int) -> float | None:
    if count <= num_parameters + 1:
        return None
    return squares + 2 * num_parameters + 2 * num_parameters * (num_parameters + 1) / (count - num_parameters - 1)


def _difference(score: float | None, least: float | None) -> float | None:
    return None if score is None or least is None else score - least


def _or_infinite(score: float | None) -> float:
    return math.inf if score is None else score


def _rate_curve(
    curve: Curve,
    p: Array,
    data: tuple[Array, Array, Array],
    difference: float | None,
    *,
    has_support: bool,
    level: float,
) -> RateCurve:
    log_batch, log_rate, errors = data
    design = _derivatives(curve, p, log_batch) / errors[:, None]
    covariance: Array = np.linalg.pinv(design.T @ design).astype(float)
    freedom = max(log_batch.size - len(curve.parameters), 1)
    quantile = _quantile(level, freedom)
    estimates = {}
    for place, (name, is_log) in enumerate(zip(curve.parameters, curve.is_log, strict=True)):
        half = quantile * math.sqrt(max(float(covariance[place, place]), 0.0))
        value = float(p[place])
        estimates[name] = (
            _exponential(value, half, level) if is_log else Estimate(value, value - half, value + half, level)
        )
    if curve.name is CurveName.SATURATING:
        estimates["exponent"] = _profiled_exponent(curve, p, data, quantile, level)
    return RateCurve(
        curve=curve,
        parameters=p,
        covariance=covariance,
        estimates=estimates,
        rms=math.sqrt(float(np.mean((curve.log_rate(p, log_batch) - log_rate) ** 2))),
        aicc_difference=difference,
        has_support=has_support,
        freedom=freedom,
        level=level,
    )


def _profiled_exponent(
    curve: Curve, p: Array, data: tuple[Array, Array, Array], quantile: float, level: float
) -> Estimate:
    """α by its profile: where B* lies beyond the sweep, α is known on one side only."""
    log_batch, log_rate, errors = data
    scales = np.linspace(float(log_batch.min()) - BATCH_SCALE_REACH, float(log_batch.max()) + BATCH_SCALE_REACH, 120)
    shape = -np.logaddexp(0.0, scales[:, None] - log_batch)
    # the limit ε* is linear in log ε: for each α and B* it is a weighted mean
    weights = 1 / errors**2
    miss = log_rate - EXPONENTS[:, None, None] * shape
    miss = miss - (miss @ weights / weights.sum())[..., None]
    least = (miss**2 @ weights).min(axis=1)
    allowed = np.flatnonzero(least <= least.min() + quantile**2)
    is_open_below, is_open_above = allowed[0] == 0, allowed[-1] == EXPONENTS.size - 1
    low = None if is_open_below else float(EXPONENTS[allowed[0]])
    high = None if is_open_above else float(EXPONENTS[allowed[-1]])
    return Estimate(float(p[2]), low, high, level)


def _derivatives(curve: Curve, p: Array, log_batch: Array) -> Array:
    """Of log ε by the parameters, [N, P], by central differences."""
    columns = []
    for place in range(p.size):
        step = np.zeros(p.size)
        step[place] = 1e-5
        columns.append((curve.log_rate(p + step, log_batch) - curve.log_rate(p - step, log_batch)) / 2e-5)
    return np.column_stack(columns)


def _quantile(level: float, freedom: int) -> float:
    return float(stdtrit(freedom, 0.5 + level / 2))


def _exponential(value: float, half: float, level: float) -> Estimate:
    if half > WIDEST:
        return Estimate(math.exp(value), None, None, level)
    return Estimate(math.exp(value), math.exp(value - half), math.exp(value + half), level)


def _explained(supported: Sequence[RateCurve]) -> str:
    names = [one.curve.formula for one in supported]
    if not names:
        return "There are too few batch sizes to compare curves: add some, and rates beyond the best one."
    if _num_kinds(supported) == 1:
        return f"The best learning rates follow {' or '.join(names)}; every other kind of curve is excluded by AICc."
    return f"The data cannot tell {', '.join(names[:-1])} and {names[-1]} apart: add batch sizes, or a finer grid."


def _num_kinds(supported: Sequence[RateCurve]) -> int:
    return len({SPECIAL_CASES.get(one.curve.name, one.curve.name) for one in supported})
