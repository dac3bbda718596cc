"""κ = B_crit / B_simple: how far the critical batch lies from the noise scale, as known for one task and optimizer."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

PUBLISHED_LOG10_SD = 0.87
"""Standard deviation of log₁₀ κ over the run averages of Table 1.

Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1; computed from its rows."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """What is known of κ, as a normal on the log scale.

    Attributes:
        log_mean: Mean of log κ.
        log_sd: Standard deviation of log κ for the run that is asked about.
        measurements: Sweeps and branches of one's own behind it; 0 is the published spread alone.
        said: Where it comes from, as a sentence.
    """

    log_mean: float
    log_sd: float
    measurements: int
    said: str

    @property
    def state(self) -> Literal["uncalibrated", "calibrated"]:
        """Calibrated from one measurement of one's own on."""
        return "calibrated" if self.measurements else "uncalibrated"

    @property
    def value(self) -> float:
        """The typical κ: the exponential of the mean of its logarithm."""
        return math.exp(self.log_mean)

    def interval(self, level: float) -> tuple[float, float]:
        """The ends between which κ of the run lies.

        Args:
            level: Confidence, between 0 and 1.
        """
        reach = NormalDist().inv_cdf(0.5 + level / 2) * self.log_sd
        return math.exp(self.log_mean - reach), math.exp(self.log_mean + reach)


UNCALIBRATED = Kappa(
    log_mean=0.0,
    log_sd=PUBLISHED_LOG10_SD * math.log(10),
    measurements=0,
    said=(
        "No sweep has tied the noise scale to a critical batch size here; "
        "over published tasks the two differ by × or ÷ 7."
    ),
)
"""κ = 1 with the published spread; see decision 0002 on the mean."""
