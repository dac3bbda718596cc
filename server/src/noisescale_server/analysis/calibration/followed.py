"""κ by the outcome of one run whose batch changed while it trained: it reached a target that a sweep was fitted to.

A step at batch B makes 1 / (1 + κ φ / B) of the progress of a step of unlimited batch, where the critical batch is κ φ
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.7 and appendix D.1). S_min such steps reach the target, so a run that
was there after T steps has

    Σ_{t ≤ T} 1 / (1 + κ φ_t / B_t) = S_min.

The sum falls in κ: it is solved for log κ. A run needs S_min times a factor whose logarithm scatters as that of the
sweep's runs about their curve, so errors of log S_min are divided by the slope d ln Σ / d ln κ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit

from noisescale_server.analysis.calibration.levels import Observation
from noisescale_server.analysis.calibration.measurement import log_sd
from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import INTERPOLATION_LIMIT

LEVEL = 0.95
FLATTEST = 0.1
"""Of |d ln Σ / d ln κ|: below it every batch was far above κ φ, and an error of 1 % in S_min is one of 10 % in κ."""

FARTHEST = 100.0
"""Of |log κ|."""

TOO_FAST = (
    "It reached the target in fewer steps than S_min, by more than runs scatter: its progress is not the sweep's."
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring steps of a run.

    Attributes:
        num_steps: How many; the last may be a part of one.
        batch_size: Their mean batch, in examples.
        noise_scale: φ at them, in examples.
    """

    num_steps: float
    batch_size: float
    noise_scale: float


@dataclass(frozen=True, slots=True)
class LeastSteps:
    """S_min as a sweep says it.

    Attributes:
        value: In steps.
        error: Standard deviation of its logarithm, which all runs that are held against the sweep share.
        scatter: Standard deviation of the logarithm of one run's steps about the curve.
    """

    value: float
    error: float
    scatter: float

    @classmethod
    def of(cls, fit: SweepFit) -> "LeastSteps":
        """Of a fitted sweep: both deviations as wide as Student's t of its degrees of freedom makes their intervals.

        Raises:
            AnalysisError: Where the interval of S_min is open.
        """
        share = 0.5 + LEVEL / 2
        widened = float(stdtrit(fit.freedom, share)) / NormalDist().inv_cdf(share)
        return cls(fit.min_steps.value, log_sd(fit.min_steps), fit.scatter * widened)


@dataclass(frozen=True, slots=True)
class FollowedKappa:
    """log κ as one run says it: a value twice, or the ends of an interval, minus infinity where it is open.

    Attributes:
        low: The value, or the lower end.
        high: The value again, or the upper end.
        own_error: Standard deviation that is this run's alone.
        shared_error: Standard deviation that it shares with all runs held against the same sweep.
    """

    low: float
    high: float
    own_error: float
    shared_error: float

    def observation(self, num_sharing: int) -> Observation:
        """One of so many that share the sweep's error.

        Each carries the shared variance as many times: the mean of all of them then has it once, as it should, where
        averaging took the error of one sweep for as many independent ones.
        """
        error = math.hypot(self.own_error, math.sqrt(num_sharing) * self.shared_error)
        return Observation(self.low, self.high, error)


def followed_kappa(
    stretches: Sequence[Stretch], steps: StepsToTarget, least: LeastSteps, *, noise_scale_error: float
) -> FollowedKappa | None:
    """Log κ of a run; None where it was faster than S_min by more than runs scatter.

    A value where T is well above S_min, well known, and not so near to it that the sum hardly falls in κ; else the
    bounds that T and S_min leave at 95 %.

    Args:
        stretches: The run from its first step to the target, in order.
        steps: To the target.
        least: S_min of the sweep.
        noise_scale_error: Standard deviation of the logarithm of φ, from the measurement alone.

    Raises:
        AnalysisError: Unless the target was reached, and all sizes are positive.
    """
    if steps.steps is None or not stretches:
        raise AnalysisError("need a run that reached the target, and its steps up to there")
    if any(min(one.num_steps, one.batch_size, one.noise_scale) <= 0 for one in stretches):
        raise AnalysisError("steps, batches and noise scales must be positive")
    is_close = steps.low > 0 and math.log(steps.high / steps.low) <= INTERPOLATION_LIMIT
    first, last = (steps.steps, steps.steps) if is_close else (steps.low, steps.high)
    log_least = math.log(least.value)
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * math.hypot(least.error, least.scatter)
    high = _solved(_cut(stretches, last), log_least - reach)
    if high is None:
        return None
    low = _solved(_cut(stretches, first), log_least + reach) if first > 0 else None
    if low is not None and is_close:
        ratios = _cut(stretches, steps.steps)
        value = _solved(ratios, log_least)
        assert value is not None, "it lies between the ends"
        slope = -_slope(ratios, value)
        if slope >= FLATTEST:
            own = math.hypot(least.scatter / slope, noise_scale_error)
            return FollowedKappa(value, value, own, least.error / slope)
        low = None
    return FollowedKappa(-math.inf if low is None else low, high, noise_scale_error, 0.0)


@dataclass(frozen=True, slots=True)
class _Ratios:
    """Steps and φ / B of each stretch, [K] both."""

    num_steps: NDArray[np.float64]
    ratio: NDArray[np.float64]


def _cut(stretches: Sequence[Stretch], steps: float) -> _Ratios:
    """So many steps from the first on; what the stretches lack is as their last."""
    counts, left = [], steps
    for one in stretches:
        counts.append(min(one.num_steps, left))
        left -= counts[-1]
    counts[-1] += left
    return _Ratios(np.array(counts), np.array([one.noise_scale / one.batch_size for one in stretches]))


def _log_sum(known: _Ratios, log_kappa: float) -> float:
    """Ln Σ."""
    return math.log(float(known.num_steps @ (1 / (1 + math.exp(log_kappa) * known.ratio))))


def _slope(known: _Ratios, log_kappa: float) -> float:
    """The slope d ln Σ / d ln κ, between -1 and 0."""
    times = math.exp(log_kappa) * known.ratio
    part = known.num_steps / (1 + times)
    return -float(part @ (times / (1 + times)) / part.sum())


def _solved(known: _Ratios, log_least: float) -> float | None:
    """Log κ at which ln Σ is this; None where not even κ = 0 leaves so many steps, or none within e^±100 does."""
    ends = [_log_sum(known, end) - log_least for end in (-FARTHEST, FARTHEST)]
    if not ends[0] > 0 > ends[1]:
        return None
    found: float = brentq(lambda log_kappa: _log_sum(known, log_kappa) - log_least, -FARTHEST, FARTHEST, xtol=1e-12)
    return found
