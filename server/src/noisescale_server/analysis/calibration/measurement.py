"""One measurement of κ = B_crit / noise scale: a critical batch against the noise scales of the runs behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from noisescale_server.analysis.calibration.levels import Observation
from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.estimate import Bounds, Estimate


@dataclass(frozen=True, slots=True)
class TypicalNoiseScale:
    """The geometric mean of runs' noise scales, in examples.

    Attributes:
        value: The mean.
        error: Standard deviation of its logarithm from the measurement alone.
        num_runs: Runs that it is of.
        squares: Sum of squared deviations of the runs' logarithms from their mean.
        run_error: Standard deviation of the logarithm of one run's, from the measurement alone.
    """

    value: float
    error: float
    num_runs: int
    squares: float
    run_error: float

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm of the mean, with what the runs differ by."""
        count = self.num_runs
        between = self.squares / (count * (count - 1)) if count > 1 else 0.0
        return math.sqrt(between + self.error**2)


def typical_noise_scale(noise_scales: Sequence[Estimate]) -> TypicalNoiseScale | None:
    """The geometric mean over runs; None without a run whose interval is bounded.

    Small tasks' critical batches follow the mean over steps of a tuned run, so each should be a run's average.
    """
    known = [one for one in noise_scales if (one.low or 0.0) > 0 and one.high is not None]
    if not known:
        return None
    logs = [math.log(one.value) for one in known]
    variances = [log_sd(one) ** 2 for one in known]
    count = len(known)
    return TypicalNoiseScale(
        value=math.exp(fmean(logs)),
        error=math.sqrt(math.fsum(variances)) / count,
        num_runs=count,
        squares=variance(logs) * (count - 1) if count > 1 else 0.0,
        run_error=math.sqrt(fmean(variances)),
    )


def log_sd(estimate: Estimate) -> float:
    """The standard deviation of the normal that is as wide as the interval, on the log scale.

    Raises:
        AnalysisError: If an end is open or not positive.
    """
    if not estimate.low or estimate.high is None:
        raise AnalysisError(f"the interval must be bounded and positive, got [{estimate.low}, {estimate.high}]")
    return math.log(estimate.high / estimate.low) / (2 * NormalDist().inv_cdf(0.5 + estimate.level / 2))


def observed_kappa(critical_batch: Estimate | Bounds, noise_scale: TypicalNoiseScale) -> Observation | None:
    """Log κ of a sweep or branch: a value where B_crit has one, else the interval that its bounds leave.

    Args:
        critical_batch: In examples.
        noise_scale: Of the runs behind it.

    Returns:
        None where B_crit has no bound at all.
    """
    value = log_interval(critical_batch)
    if value is None:
        return None
    low, high, error = value
    log_scale = math.log(noise_scale.value)
    return Observation(
        low=low - log_scale,
        high=high - log_scale,
        error=math.hypot(error, noise_scale.error),
        num_runs=noise_scale.num_runs,
        squares=noise_scale.squares,
        run_error=noise_scale.run_error,
    )


def log_interval(critical_batch: Estimate | Bounds) -> tuple[float, float, float] | None:
    """(low, high, error) of log B_crit: a value twice with its error, or the ends of an interval; None without any."""
    if isinstance(critical_batch, Estimate) and (critical_batch.low or 0.0) > 0 and critical_batch.high is not None:
        center = math.log(critical_batch.value)
        return center, center, log_sd(critical_batch)
    low = math.log(critical_batch.low) if critical_batch.low else -math.inf
    high = math.log(critical_batch.high) if critical_batch.high is not None else math.inf
    return (low, high, 0.0) if low > -math.inf or high < math.inf else None
