"""Steps and examples at any batch size, from a fitted sweep, with bands for the curve and for one more run."""

import math
from dataclasses import dataclass

from scipy.special import stdtrit

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a run at a batch size needs to reach the target of the sweep.

    Attributes:
        batch_size: In examples.
        steps: Of the curve: the mean of many runs tuned alike.
        examples: Of the curve, batch size times steps.
        steps_of_one_run: The same value with the band in which one more run falls.
        is_extrapolated: The batch size lies outside the sweep, where the curve is trusted and not seen.
    """

    batch_size: float
    steps: Estimate
    examples: Estimate
    steps_of_one_run: Estimate
    is_extrapolated: bool


def predict(fit: SweepFit, batch_size: float) -> Prediction:
    """The prediction at a batch size, at the confidence level of the fit.

    The band of the curve is the projection of the fit's likelihood region; one more run adds its scatter, in squares
    and at each side by itself, since the region is not symmetric.

    Raises:
        AnalysisError: Unless the batch size is positive and finite.
    """
    if not 0 < batch_size < math.inf:
        raise AnalysisError(f"batch_size must be positive and finite, got {batch_size}")
    log_batch = math.log(batch_size)
    value = fit.log_steps(log_batch)
    low, high = fit.region.log_steps(log_batch)
    noise = float(stdtrit(fit.freedom, 0.5 + fit.level / 2)) * fit.scatter
    one_low, one_high = value - math.hypot(value - low, noise), value + math.hypot(high - value, noise)
    sizes = [residual.batch_size for residual in fit.residuals]
    return Prediction(
        batch_size=batch_size,
        steps=Estimate.from_logs(value, (low, high), fit.level),
        examples=Estimate.from_logs(value + log_batch, (low + log_batch, high + log_batch), fit.level),
        steps_of_one_run=Estimate.from_logs(value, (one_low, one_high), fit.level),
        is_extrapolated=not min(sizes) <= batch_size <= max(sizes),
    )
