"""Log-normal steps of which some are known only as an interval or as a lower bound (Tobit).

In α = level / σ and θ = 1 / σ the log likelihood is concave, so Newton's method with halved steps finds its one
maximum from anywhere: Olsen 1978, "Note on the uniqueness of the maximum likelihood estimator for the Tobit model",
Econometrica 46; for intervals Burridge 1981, Journal of the Royal Statistical Society B 43.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from noisescale_server.analysis.sweeps.fitting.likelihood import Profile, reference_of, shape
from noisescale_server.analysis.sweeps.fitting.many_roots import many_roots
from noisescale_server.analysis.sweeps.fitting.observations import Observations
from noisescale_server.analysis.sweeps.points.hyperbola import Array

MOST_ITERATIONS = 60
MOST_HALVINGS = 30
SMALL_GAIN = 1e-11
ENOUGH = 1e-4
ROUNDING = 1e-12
SMALLEST_DETERMINANT = 1e-300
MOST = 300.0

LEAST_SQUARES = 1e-7
"""Added to the squared deviations: noise of 0.03 % of the steps. Intervals that one curve passes through would
otherwise have no most likely noise."""

ROUNDING_SHARE = 0.1
"""Intervals wider than the noise leave the noise nearly free, down to nothing; this share of the squares that rounding
makes by itself is taken as seen. Chosen by simulation: without it 86 % of the 95 % intervals held the truth, with it
95 % or more.
"""

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class _Terms:
    """log likelihood, its gradient and its negative Hessian in (α, θ), at each of G points."""

    value: Array
    by_alpha: Array
    by_theta: Array
    alpha_alpha: Array
    alpha_theta: Array
    theta_theta: Array


class CensoredLikelihood:
    """Profile likelihood with exact, interval-censored and right-censored steps."""

    def __init__(self, data: Observations) -> None:
        self._data = data
        self._squares = data.squares + LEAST_SQUARES + _rounding(data)
        self.reference = reference_of(data)

    def profile(self, log_critical: Array, exponent: Array | float = 1.0) -> Profile:
        """The best fit at each log B_crit."""
        residuals = self._residuals(log_critical, exponent)
        alpha, theta = self._start(residuals)
        alpha, theta, value = _climb(lambda a, t: self._terms(residuals, a, t), alpha, theta)
        return Profile(-2 * value, alpha / theta, 1 / theta)

    def level_ends(self, log_critical: Array, cut: float) -> tuple[Array, Array]:
        """The levels between which the deviance is at most `cut`, by false position outwards from the best."""
        best = self.profile(log_critical)
        residuals = self._residuals(log_critical, 1.0)
        ends = []
        for side in (-1.0, 1.0):
            step = side * best.scatter
            while np.any(inside := self._deviance_at(residuals, best.level + step, best.scatter) <= cut):
                step = np.where(inside, 2 * step, step)

            def above(away: Array) -> Array:
                return self._deviance_at(residuals, best.level + away, best.scatter) - cut

            near = many_roots(above, np.zeros_like(step), step, at_inside=best.deviance - cut)
            ends.append(np.where(best.deviance <= cut + 1e-9, best.level + near, np.nan))
        return ends[0], ends[1]

    def _residuals(self, log_critical: Array, exponent: Array | float) -> tuple[Array, Array, Array]:
        """Log S less the curve's shape: of exact means and of both ends of the censored, [G, K], [G, Q], [G, Q]."""
        data = self._data
        censored_shape = shape(log_critical, data.censored_log_batch, self.reference, exponent)
        exact = data.log_steps - shape(log_critical, data.log_batch, self.reference, exponent)
        return exact, data.log_low - censored_shape, data.log_high - censored_shape

    def _start(self, residuals: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """Where Newton starts: every censored value taken at its finite ends."""
        exact, low, high = residuals
        taken = np.where(np.isinf(low), high, np.where(np.isinf(high), low, (low + high) / 2))
        values = np.concatenate([exact, taken], axis=1)
        level, scatter = values.mean(1), np.maximum(values.std(1), 1e-3)
        return level / scatter, 1 / scatter

    def _deviance_at(self, residuals: tuple[Array, Array, Array], level: Array, scatter: Array) -> Array:
        """The deviance at a level, with the best noise: the maximum of a concave function of θ alone."""

        def along(_: Array, theta: Array) -> _Terms:
            terms = self._terms(residuals, level * theta, theta)
            slope = level * terms.by_alpha + terms.by_theta
            curve = level**2 * terms.alpha_alpha + 2 * level * terms.alpha_theta + terms.theta_theta
            nothing = np.zeros_like(slope)
            return _Terms(terms.value, nothing, slope, np.ones_like(slope), nothing, curve)

        _, _, value = _climb(along, np.zeros_like(level), 1 / scatter)
        return -2 * value

    def _terms(self, residuals: tuple[Array, Array, Array], alpha: Array, theta: Array) -> _Terms:
        exact, low, high = residuals
        data = self._data
        deviation = theta[:, None] * exact - alpha[:, None]
        weighted = data.weight * deviation
        total = data.count.sum()
        value = total * np.log(theta) - (weighted * deviation).sum(1) / 2 - theta**2 * self._squares / 2
        by_alpha = weighted.sum(1)
        by_theta = total / theta - (weighted * exact).sum(1) - theta * self._squares
        alpha_alpha = np.full_like(theta, data.weight.sum())
        alpha_theta = -(data.weight * exact).sum(1)
        theta_theta = total / theta**2 + (data.weight * exact**2).sum(1) + self._squares
        if low.shape[1]:
            more = _censored_terms(low, high, alpha, theta)
            return _Terms(
                value + more.value,
                by_alpha + more.by_alpha,
                by_theta + more.by_theta,
                alpha_alpha + more.alpha_alpha,
                alpha_theta + more.alpha_theta,
                theta_theta + more.theta_theta,
            )
        return _Terms(value, by_alpha, by_theta, alpha_alpha, alpha_theta, theta_theta)


def _censored_terms(low: Array, high: Array, alpha: Array, theta: Array) -> _Terms:
    """log(Φ(upper) - Φ(lower)) and its derivatives, upper = θ high - α."""
    lower = theta[:, None] * low - alpha[:, None]
    upper = theta[:, None] * high - alpha[:, None]
    # in the left tail both probabilities are small numbers whose difference keeps its digits
    flip = lower > 0
    left, right = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    log_mass = _log_difference(log_ndtr(right), log_ndtr(left))
    at_upper = np.where(np.isinf(upper), 0.0, np.exp(np.minimum(-_half_square(upper) - _LOG_SQRT_2PI - log_mass, MOST)))
    at_lower = np.where(np.isinf(lower), 0.0, np.exp(np.minimum(-_half_square(lower) - _LOG_SQRT_2PI - log_mass, MOST)))
    high, low = np.where(np.isinf(high), 0.0, high), np.where(np.isinf(low), 0.0, low)
    upper, lower = np.where(np.isinf(upper), 0.0, upper), np.where(np.isinf(lower), 0.0, lower)
    by_alpha, by_theta = at_lower - at_upper, at_upper * high - at_lower * low
    return _Terms(
        log_mass.sum(1),
        by_alpha.sum(1),
        by_theta.sum(1),
        (by_alpha**2 + upper * at_upper - lower * at_lower).sum(1),
        (by_alpha * by_theta - upper * high * at_upper + lower * low * at_lower).sum(1),
        (by_theta**2 + upper * high**2 * at_upper - lower * low**2 * at_lower).sum(1),
    )


def _rounding(data: Observations) -> float:
    """A share of Σ w² / 12 over the finite widths w, the squared deviations that rounding to an interval makes."""
    width = data.log_high - data.log_low
    return float((width[np.isfinite(width)] ** 2).sum()) / 12 * ROUNDING_SHARE


def _half_square(value: Array) -> Array:
    return np.where(np.isinf(value), 0.0, value) ** 2 / 2


def _log_difference(log_larger: Array, log_smaller: Array) -> Array:
    """log(exp(x) - exp(y)) for x > y."""
    difference: Array = log_larger + np.log(-np.expm1(np.minimum(log_smaller - log_larger, -1e-300)))
    return difference


def _climb(terms_at: Callable[[Array, Array], _Terms], alpha: Array, theta: Array) -> tuple[Array, Array, Array]:
    """The maximum at each of G points by Newton's method, steps halved until they gain."""
    terms = terms_at(alpha, theta)
    for _ in range(MOST_ITERATIONS):
        determinant = np.maximum(terms.alpha_alpha * terms.theta_theta - terms.alpha_theta**2, SMALLEST_DETERMINANT)
        step_alpha = (terms.theta_theta * terms.by_alpha - terms.alpha_theta * terms.by_theta) / determinant
        step_theta = (terms.alpha_alpha * terms.by_theta - terms.alpha_theta * terms.by_alpha) / determinant
        gain = step_alpha * terms.by_alpha + step_theta * terms.by_theta
        is_done = gain <= SMALL_GAIN
        if np.all(is_done):
            break
        # far from the maximum a full step may leave the range in which θ means anything
        share = np.where(is_done, 0.0, 1 / np.maximum(1, np.abs(step_theta) / (0.9 * theta)))
        for _ in range(MOST_HALVINGS):
            trial = terms_at(alpha + share * step_alpha, theta + share * step_theta)
            is_better = is_done | (trial.value >= terms.value + ENOUGH * share * gain - ROUNDING)
            if np.all(is_better):
                break
            share = np.where(is_better, share, share / 2)
        alpha, theta, terms = alpha + share * step_alpha, theta + share * step_theta, trial
    return alpha, theta, terms.value
