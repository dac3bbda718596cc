"""How log steps fall with log batch size on the whole: with a slope between -1 and 0 if the theory holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from noisescale_server.analysis.sweeps.fitting.noise import RepeatNoise
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint


@dataclass(frozen=True, slots=True)
class Slope:
    """d log S / d log B of the straight line through a sweep.

    Attributes:
        value: -1 where examples to the target stay the same, 0 where steps do.
        low: Lower end of its interval.
        high: Upper end of its interval.
    """

    value: float
    low: float
    high: float


def overall_slope(points: Sequence[SweepPoint], noise: RepeatNoise | None, level: float) -> Slope | None:
    """The line through the batch sizes with known steps; None for fewer than three.

    Every mean of slopes of S_min (1 + B_crit / B) lies between -1 and 0, so a slope beyond, by more than the noise of
    repeats (or, without repeats, by more than the scatter about the line), contradicts the model whatever B_crit is.
    """
    known = [(point.batch_size, point.repeats) for point in points if point.repeats is not None]
    if len(known) < 3:
        return None
    log_batch = np.log([batch for batch, _ in known])
    log_steps = np.array([repeats.mean_log_steps for _, repeats in known])
    centred = log_batch - log_batch.mean()
    spread = float(centred @ centred)
    value = float(centred @ log_steps) / spread
    if noise is not None and noise.is_known:
        per_mean = np.array([noise.sd**2 / repeats.count for _, repeats in known])
        error, freedom = math.sqrt(float(centred**2 @ per_mean)) / spread, noise.freedom
    else:
        residual = log_steps - log_steps.mean() - value * centred
        freedom = len(known) - 2
        error = math.sqrt(float(residual @ residual) / freedom / spread)
    half = float(stdtrit(freedom, 0.5 + level / 2)) * error
    return Slope(value, value - half, value + half)
