"""The fit of a sweep that turns: all batch sizes by E = E_0 (1 + B / B_crit + (s / B)^p)."""

import math
from collections.abc import Sequence

import numpy as np

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting import wording
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import LARGEST_MISFIT, against
from noisescale_server.analysis.sweeps.fitting.noise import MISFIT_PROBABILITY, RepeatNoise, misfit_probability
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel
from noisescale_server.analysis.sweeps.fitting.profile_region import allowance, best_log_critical, search_grid
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason, one_sided
from noisescale_server.analysis.sweeps.fitting.sweep_fit import LogCovariance, Residual, SweepFit
from noisescale_server.analysis.sweeps.fitting.turn import Turn
from noisescale_server.analysis.sweeps.fitting.turning_curve import log_best_batch, log_rise, rise
from noisescale_server.analysis.sweeps.points.hyperbola import Array, log_steps_ratio
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint
from noisescale_server.analysis.sweeps.turning.detection import Detection, own_variances
from noisescale_server.analysis.sweeps.turning.likelihood import BestTurn, TurningLikelihood
from noisescale_server.analysis.sweeps.turning.region import TurningRegion, turning_region

PARAMETERS = 3
"""E_0, B_crit and s; p is known within a factor of 2 before, and costs no value."""

SMALL = 1e-4


class _Curve:
    """The most likely turning curve."""

    def __init__(self, likelihood: TurningLikelihood, grid: Array) -> None:
        turning = BestTurn(likelihood)
        self.log_critical, self.deviance = best_log_critical(turning, grid)
        at = np.array([self.log_critical])
        starts, powers = turning.best_turns(at)
        self.log_start, self.power = float(starts[0]), float(powers[0])
        found = likelihood.at(at, starts, powers)
        self.scatter = float(found.scatter[0])
        self.log_min_steps = float(found.level[0] - log_steps_ratio(self.log_critical, likelihood.reference))

    def log_steps(self, log_batch: Array | float) -> Array:
        """Log S, turn included."""
        hyperbola = self.log_min_steps + log_steps_ratio(self.log_critical, log_batch)
        return hyperbola + log_rise(self.log_critical, self.log_start, self.power, log_batch)

    @property
    def log_best(self) -> float:
        """Log B_opt."""
        return float(log_best_batch(self.log_critical, self.log_start, self.power))


def fit_turning(
    points: Sequence[SweepPoint], found: Detection, noise: RepeatNoise | None, *, level: float, counts_steps: bool
) -> SweepFit | Refusal:
    """The turning curve through the batch sizes with known steps, or why there is none.

    Args:
        points: The sweep, from small to large.
        found: That it turns.
        noise: What repeats show.
        level: Confidence level of every interval.
        counts_steps: Whether the steps are optimizer steps.
    """
    data, likelihood = found.data, TurningLikelihood(found.data)
    grid = search_grid(data.log_batch)
    curve = _Curve(likelihood, grid)
    residuals = tuple(_residual(point, curve) for point in found.points)
    rms = math.sqrt(math.fsum(one.log_ratio**2 for one in residuals) / len(residuals))
    misfit = _misfit_probability(found, residuals, noise)
    if misfit is not None and misfit < MISFIT_PROBABILITY and rms > LARGEST_MISFIT and noise is not None:
        return Refusal(RefusalReason.MISFIT, wording.misfit(rms, noise.sd))
    allowed = allowance(num_values=data.num_values, num_parameters=PARAMETERS, level=level)
    region = turning_region(likelihood, grid, least=curve.deviance, allowed=allowed, best=curve.log_critical)
    if not isinstance(region, TurningRegion):
        return one_sided(points, region, level, turn=_words(found, curve))
    scatter = curve.scatter * math.sqrt(data.num_values / (data.num_values - PARAMETERS))
    return SweepFit(
        min_steps=Estimate.from_logs(curve.log_min_steps, region.log_min_steps(), level),
        min_examples=Estimate.from_logs(curve.log_min_steps + curve.log_critical, region.log_min_examples(), level),
        critical_batch=Estimate.from_logs(curve.log_critical, region.log_critical_batch(), level),
        covariance=_covariance(curve, data.log_batch, data.weight, scatter),
        scatter=scatter,
        freedom=data.num_values - PARAMETERS,
        noise_level=NoiseLevel.BATCH_SIZES,
        noise=noise,
        rms=rms,
        residuals=residuals,
        turn=_turn(found, curve, region, level),
        lack_of_fit=against(
            points,
            noise,
            misfit,
            power=None,
            min_steps=math.exp(curve.log_min_steps) if counts_steps else None,
        ),
        region=region,
        level=level,
    )


def _turn(found: Detection, curve: _Curve, region: TurningRegion, level: float) -> Turn:
    smallest, largest = found.points[0].batch_size, found.points[-1].batch_size
    low, high = (math.exp(end) for end in region.log_best_batch())
    best = Estimate(
        math.exp(curve.log_best), low if low >= smallest else None, high if high <= largest else None, level
    )
    return Turn(
        best_batch=best,
        rise=_rise(found, curve),
        probability=found.probability,
        batch_sizes=tuple(point.batch_size for point in found.points if point.batch_size < best.value),
        start=math.exp(curve.log_start),
        power=curve.power,
        explanation=f"{_words(found, curve)} {wording.without_the_turn()}",
    )


def _words(found: Detection, curve: _Curve) -> str:
    return wording.turns(
        best=math.exp(curve.log_best),
        smallest=found.points[0].batch_size,
        rise=_rise(found, curve),
        probability=found.probability,
    )


def _rise(found: Detection, curve: _Curve) -> float:
    return rise(curve.log_critical, curve.log_start, curve.power, math.log(found.points[0].batch_size))


def _residual(point: SweepPoint, curve: _Curve) -> Residual:
    assert point.repeats is not None, "a turn is looked for among known steps"
    return Residual(point.batch_size, point.repeats.mean_log_steps - float(curve.log_steps(math.log(point.batch_size))))


def _misfit_probability(found: Detection, residuals: Sequence[Residual], noise: RepeatNoise | None) -> float | None:
    freedom = len(residuals) - PARAMETERS - 1
    if noise is None or not noise.is_known or freedom < 1:
        return None
    variances = own_variances(found.points, noise) or [
        noise.sd**2 / (1 if point.repeats is None else point.repeats.count) for point in found.points
    ]
    squares = math.fsum(one.log_ratio**2 / variance for one, variance in zip(residuals, variances, strict=True))
    return misfit_probability(squares=squares * noise.sd**2, freedom=freedom, noise=noise)


def _covariance(curve: _Curve, log_batch: Array, weight: Array, scatter: float) -> LogCovariance:
    """Of log S_min and log B_crit, with log s at its best: σ² (JᵀWJ)⁻¹ for the slopes J of log S."""
    c, s, p = curve.log_critical, curve.log_start, curve.power

    def log_steps(critical: float, start: float) -> Array:
        return log_steps_ratio(critical, log_batch) + log_rise(critical, start, p, log_batch)

    slopes = [
        np.ones_like(log_batch),
        (log_steps(c + SMALL, s) - log_steps(c - SMALL, s)) / (2 * SMALL),
        (log_steps(c, s + SMALL) - log_steps(c, s - SMALL)) / (2 * SMALL),
    ]
    jacobian = np.stack(slopes, axis=1)
    found = scatter**2 * np.linalg.pinv(jacobian.T @ (weight[:, None] * jacobian))
    return LogCovariance(min_steps=float(found[0, 0]), critical_batch=float(found[1, 1]), between=float(found[0, 1]))
