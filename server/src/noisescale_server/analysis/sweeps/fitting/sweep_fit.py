"""A fitted sweep."""

import math
from dataclasses import dataclass

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import LackOfFit
from noisescale_server.analysis.sweeps.fitting.noise import RepeatNoise
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel
from noisescale_server.analysis.sweeps.fitting.profile_region import ProfileRegion
from noisescale_server.analysis.sweeps.fitting.turn import Turn
from noisescale_server.analysis.sweeps.fitting.turning_curve import log_rise
from noisescale_server.analysis.sweeps.points.hyperbola import log_steps_ratio


@dataclass(frozen=True, slots=True)
class LogCovariance:
    """Covariance of log S_min and log B_crit, for small errors.

    With p = B_crit / (B_crit + B) at each batch size: Var log B_crit = σ² / Q with Q = Σ w (p - p̄)². Exact for a
    straight line; where the profile is not a parabola, intervals from it are too short and those of the fit are right.

    Attributes:
        min_steps: Var log S_min.
        critical_batch: Var log B_crit.
        between: Their covariance, always negative.
    """

    min_steps: float
    critical_batch: float
    between: float

    @property
    def min_examples(self) -> float:
        """Var log E_min, E_min = S_min B_crit."""
        return self.min_steps + self.critical_batch + 2 * self.between


@dataclass(frozen=True, slots=True)
class Residual:
    """How far a batch size lies from the curve.

    Attributes:
        batch_size: In examples.
        log_ratio: log(S / curve); positive where more steps were needed.
    """

    batch_size: float
    log_ratio: float


@dataclass(frozen=True, slots=True)
class SweepFit:
    """S = S_min (1 + B_crit / B) fitted to a sweep, at small batches with a turn where it has one.

    Attributes:
        min_steps: S_min, in steps.
        min_examples: E_min, in examples.
        critical_batch: B_crit = E_min / S_min, in examples.
        covariance: For small errors.
        scatter: Standard deviation of log S of one value about the curve.
        freedom: Degrees of freedom of the scatter.
        noise_level: What scatters: single runs or batch sizes.
        noise: What repeats show; None without repeats.
        rms: Root mean square of log(S / curve) over batch sizes with known steps.
        residuals: At each batch size with known steps.
        turn: That examples rise again at small batches; None where they do not. S_min, E_min and B_crit are of the
            curve without it.
        lack_of_fit: What speaks against the fit.
        region: The likelihood region, for predictions at `level`.
        level: Confidence level of all intervals.
    """

    min_steps: Estimate
    min_examples: Estimate
    critical_batch: Estimate
    covariance: LogCovariance
    scatter: float
    freedom: float
    noise_level: NoiseLevel
    noise: RepeatNoise | None
    rms: float
    residuals: tuple[Residual, ...]
    turn: Turn | None
    lack_of_fit: LackOfFit
    region: ProfileRegion
    level: float

    def log_steps(self, log_batch: float) -> float:
        """Log S of the curve at a batch size, its turn included."""
        if self.turn is None:
            return self.log_steps_without_turn(log_batch)
        critical, start = math.log(self.critical_batch.value), math.log(self.turn.start)
        return self.log_steps_without_turn(log_batch) + float(log_rise(critical, start, self.turn.power, log_batch))

    def log_steps_without_turn(self, log_batch: float) -> float:
        """Log S_min (1 + B_crit / B)."""
        log_critical = math.log(self.critical_batch.value)
        return math.log(self.min_steps.value) + float(log_steps_ratio(log_critical, log_batch))

    @property
    def least_batch(self) -> float:
        """The smallest batch size at which the hyperbola holds, in examples: B_opt of a sweep that turns, else 0."""
        return 0.0 if self.turn is None else self.turn.best_batch.value
