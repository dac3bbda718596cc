"""The fit of a sweep: S_min, E_min and B_crit with profile-likelihood intervals, or the reason why not.

log S = log S_min + log(1 + B_crit / B) + noise. The residuals of log S and log E are the same, since E = B S exactly,
so there is one residual a batch size and no choice between the two axes.

Source of the model: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11 and appendix D.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting import wording
from noisescale_server.analysis.sweeps.fitting.censored_likelihood import CensoredLikelihood
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import LARGEST_MISFIT, against, exponent
from noisescale_server.analysis.sweeps.fitting.likelihood import Likelihood, NormalLikelihood
from noisescale_server.analysis.sweeps.fitting.noise import (
    MISFIT_PROBABILITY,
    RepeatNoise,
    misfit_probability,
    repeat_noise,
    variances_of_means,
)
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel, Observations, observations
from noisescale_server.analysis.sweeps.fitting.profile_region import (
    ProfileRegion,
    allowance,
    best_log_critical,
    profile_region,
    search_grid,
)
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason, one_sided
from noisescale_server.analysis.sweeps.fitting.slope import overall_slope
from noisescale_server.analysis.sweeps.fitting.student_likelihood import StudentLikelihood
from noisescale_server.analysis.sweeps.fitting.sweep_fit import LogCovariance, Residual, SweepFit
from noisescale_server.analysis.sweeps.points.hyperbola import Array, example_share, log_steps_ratio
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint
from noisescale_server.analysis.sweeps.turning.detection import find_turn
from noisescale_server.analysis.sweeps.turning.fit import fit_turning

FEWEST_BATCH_SIZES = 3
POOLING_PROBABILITY = 0.25
"""Repeats are taken as the only noise if the curve misses by no more than they would at this chance: at 0.05, noise of
tuning that is hard to see made 95 % intervals hold the truth in 92 %. Bancroft 1964, Biometrics 20, on such choices."""

DISAGREEMENT = math.log(2)
"""Repeats whose standard deviation is a factor of 2 are not repeats of the same thing, if those elsewhere agree."""


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A likelihood with its best curve and region."""

    data: Observations
    likelihood: Likelihood
    level_of_noise: NoiseLevel
    log_critical: float
    log_min_steps: float
    scatter: float
    region: ProfileRegion


def fit_sweep(
    points: Sequence[SweepPoint], *, level: float = 0.95, is_robust: bool = False, counts_steps: bool = True
) -> SweepFit | Refusal:
    """The curve through a sweep, or why there is none.

    Args:
        points: Batch sizes, each once, with the steps to one target at their best learning rate.
        level: Confidence level of every interval.
        is_robust: Student's t with 4 degrees of freedom for the noise: an outlier moves the curve little. No turn is
            looked for then.
        counts_steps: Whether the steps are optimizer steps; published counts may be in epochs per example.

    Raises:
        AnalysisError: If a batch size is there twice, or the level is not between 0 and 1.
    """
    _check(points, level)
    points = sorted(points, key=lambda point: point.batch_size)
    noise = repeat_noise(points)
    turn = None if is_robust else find_turn(points, noise)
    refusal = _refuse_before_fitting(points, noise, level, turns=turn is not None)
    if refusal is not None:
        return refusal
    if turn is not None:
        return fit_turning(points, turn, noise, level=level, counts_steps=counts_steps)
    misfit = _misfit_probability(points, noise)
    fitted = _fitted(points, noise, misfit, level, is_robust=is_robust)
    residuals = _residuals(points, fitted)
    rms = math.sqrt(sum(item.log_ratio**2 for item in residuals) / max(len(residuals), 1))
    if misfit is not None and misfit < MISFIT_PROBABILITY and rms > LARGEST_MISFIT and noise is not None:
        return Refusal(RefusalReason.MISFIT, wording.misfit(rms, noise.sd))
    if fitted.region.is_open_above or fitted.region.is_open_below:
        return one_sided(points, fitted.region, level)
    return SweepFit(
        **_estimates(fitted, level),
        covariance=_covariance(fitted),
        scatter=fitted.scatter,
        freedom=fitted.data.num_values - 2,
        noise_level=fitted.level_of_noise,
        noise=noise,
        rms=rms,
        residuals=residuals,
        turn=None,
        lack_of_fit=against(
            points,
            noise,
            misfit,
            power=exponent(fitted.likelihood, fitted.data, level=level),
            min_steps=math.exp(fitted.log_min_steps) if counts_steps else None,
        ),
        region=fitted.region,
        level=level,
    )


def _check(points: Sequence[SweepPoint], level: float) -> None:
    sizes = [point.batch_size for point in points]
    if len(set(sizes)) < len(sizes):
        twice = next(size for size in sizes if sizes.count(size) > 1)
        raise AnalysisError(f"batch_size {twice:g} is there more than once: put its runs into one point")
    if not 0 < level < 1:
        raise AnalysisError(f"level must be between 0 and 1, got {level}")


def _refuse_before_fitting(
    points: Sequence[SweepPoint], noise: RepeatNoise | None, level: float, *, turns: bool
) -> Refusal | None:
    # a target that was met at the first look tells nothing: any number of steps up to there would have done it
    known = [
        point
        for point in points
        if point.repeats is not None or any(low > 0 and high < math.inf for low, high in point.censored)
    ]
    if len(known) < FEWEST_BATCH_SIZES:
        return Refusal(RefusalReason.TOO_FEW_BATCH_SIZES, wording.too_few(len(known), len(points), FEWEST_BATCH_SIZES))
    unsteady = _where_repeats_disagree(points, noise)
    if unsteady is not None:
        return Refusal(RefusalReason.REPEATS_DISAGREE, wording.repeats_disagree(*unsteady))
    slope = overall_slope(points, noise, level)
    if slope is not None and slope.low > 0:
        return Refusal(RefusalReason.STEPS_RISE, wording.steps_rise(slope))
    if slope is not None and slope.high < -1 and not turns:
        return Refusal(RefusalReason.EXAMPLES_FALL, wording.examples_fall(slope))
    return None


def _where_repeats_disagree(
    points: Sequence[SweepPoint], noise: RepeatNoise | None
) -> tuple[float, float, float] | None:
    """The batch size whose repeats scatter by a factor where others agree, its scatter and theirs."""
    if noise is None:
        return None
    sds = [(math.sqrt(variance), point) for point, variance in zip(points, noise.variances, strict=True) if variance]
    if len(sds) < FEWEST_BATCH_SIZES:
        return None
    usual = float(np.median([sd for sd, _ in sds]))
    worst, point = max(sds, key=lambda item: item[0])
    return (point.batch_size, worst, usual) if worst > max(DISAGREEMENT, 4 * usual) else None


def _misfit_probability(points: Sequence[SweepPoint], noise: RepeatNoise | None) -> float | None:
    """The F test against repeats, of the batch sizes whose runs all arrived; None where it cannot be made."""
    known = [point for point in points if point.repeats is not None and not point.censored]
    if noise is None or not noise.is_known or len(known) < FEWEST_BATCH_SIZES:
        return None
    weights = None
    if noise.may_be_unequal:
        variances = dict(zip(points, variances_of_means(points, noise), strict=True))
        weights = np.array([1 / variances[point] for point in known])
    data = observations(known, NoiseLevel.RUNS)
    likelihood = NormalLikelihood(data)
    best, _ = best_log_critical(likelihood, search_grid(data.all_log_batch))
    found = likelihood.profile(np.array([best]))
    if weights is None:
        squares = float(found.scatter[0]) ** 2 * data.num_values - data.squares
        return misfit_probability(squares=squares, freedom=len(known) - 2, noise=noise)
    shape = log_steps_ratio(best, data.log_batch) - log_steps_ratio(best, likelihood.reference)
    residual = data.log_steps - shape
    residual -= weights @ residual / weights.sum()
    return misfit_probability(squares=float(weights @ residual**2) * noise.sd**2, freedom=len(known) - 2, noise=noise)


def _fitted(
    points: Sequence[SweepPoint], noise: RepeatNoise | None, misfit: float | None, level: float, *, is_robust: bool
) -> _Fitted:
    is_pooled = misfit is not None and misfit >= POOLING_PROBABILITY
    is_unequal = noise is not None and noise.may_be_unequal
    noise_level = NoiseLevel.RUNS if is_pooled and not is_unequal and not is_robust else NoiseLevel.BATCH_SIZES
    variances = variances_of_means(points, noise) if noise is not None and is_unequal and not is_robust else None
    data = observations(points, noise_level, variances)
    likelihood: Likelihood
    if is_robust:
        likelihood = StudentLikelihood(data)
    else:
        likelihood = CensoredLikelihood(data) if data.has_censored else NormalLikelihood(data)
    grid = search_grid(data.all_log_batch)
    best, least = best_log_critical(likelihood, grid)
    allowed = allowance(num_values=data.num_values, num_parameters=2, level=level)
    region = profile_region(likelihood, grid, least=least, allowed=allowed, best=best)
    found = likelihood.profile(np.array([best]))
    unbiased = math.sqrt(data.num_values / (data.num_values - 2))
    min_steps = float(found.level[0] - log_steps_ratio(best, likelihood.reference))
    return _Fitted(data, likelihood, noise_level, best, min_steps, float(found.scatter[0]) * unbiased, region)


def _residuals(points: Sequence[SweepPoint], fitted: _Fitted) -> tuple[Residual, ...]:
    found = []
    for point in points:
        log_steps = _known_log_steps(point)
        if log_steps is not None:
            curve = fitted.log_min_steps + float(log_steps_ratio(fitted.log_critical, math.log(point.batch_size)))
            found.append(Residual(point.batch_size, log_steps - curve))
    return tuple(found)


def _known_log_steps(point: SweepPoint) -> float | None:
    """Mean log S of a batch size; the middle of its intervals if nothing better is known, None if all are bounds."""
    if point.repeats is not None:
        return point.repeats.mean_log_steps
    middles = [math.log(low * high) / 2 for low, high in point.censored if low > 0 and high < math.inf]
    return math.fsum(middles) / len(middles) if middles else None


def _estimates(fitted: _Fitted, level: float) -> dict[str, Estimate]:
    region, c, a = fitted.region, fitted.log_critical, fitted.log_min_steps
    return {
        "min_steps": Estimate.from_logs(a, region.log_min_steps(), level),
        "min_examples": Estimate.from_logs(a + c, region.log_min_examples(), level),
        "critical_batch": Estimate.from_logs(c, region.log_critical_batch(), level),
    }


def _covariance(fitted: _Fitted) -> LogCovariance:
    data = fitted.data
    weight: Array = np.concatenate([data.weight, np.isfinite(data.log_high).astype(float)])
    share = example_share(fitted.log_critical, data.all_log_batch)
    mean = float(weight @ share / weight.sum())
    spread = float(weight @ (share - mean) ** 2)
    variance = fitted.scatter**2
    return LogCovariance(
        min_steps=variance * (1 / float(weight.sum()) + mean**2 / spread),
        critical_batch=variance / spread,
        between=-variance * mean / spread,
    )
