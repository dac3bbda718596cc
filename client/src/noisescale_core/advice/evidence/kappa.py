"""κ = B_crit / B_simple: how far the critical batch lies from the noise scale, as known for one task and optimizer."""

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

# How much of its plan a run has done, where nobody has said a plan.

UNKNOWN_PROGRESS = 0.25
"""Stands for the progress of a run without a plan."""


PUBLISHED_LOG10_SD = 0.87
"""Standard deviation of log₁₀ κ over the run averages of Table 1.

Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1; computed from its rows."""


ODDS_LOG_SD = 1.0
"""Standard deviation of ln κ for odds and choices where no sweep has calibrated the task.

Over design tasks of ours it is 1.1 about the course below by plain SGD and 1.3 where gradients are averaged, runs at a
quarter to four times the best rate included. Odds with 1.0 that a smaller batch is cheaper come true within 5 % of what
they say, those of larger ones more often; with more all are more timid (`docs/deciding.md`)."""

COURSE = ((0.10, 0.23), (0.25, 0.22), (0.50, -0.34), (1.0, -0.78))
"""Mean of ln κ by progress for plain SGD, φ being that of the moment: it rises as a run goes on, and B_crit is one
number of the run.

Fitted on 17 pairs of task and optimizer of ours with tuned sweeps, together with the two numbers below
(`benchmarks/policies/benchmark_kappa.py`)."""

RATE_EXPONENT = 0.6
"""φ goes as the learning rate over its peak to the power of minus this, while a schedule lowers the rate.

At a plateau it would be 1 (McCandlish et al. 2018, arXiv:1812.06162, appendix C); fitted with the course."""

OF_AVERAGED_GRADIENTS = 1.24
"""Added to the mean of ln κ where the optimizer averages gradients over steps, as SGD with momentum and Adam do.

Larger batches serve such an optimizer for longer (Shallue et al. 2018, arXiv:1811.03600; Zhang et al. 2019,
arXiv:1907.04164), and B_simple, which is of single steps, knows nothing of it. Fitted with the course; without it odds
that a smaller batch is cheaper came true too rarely (decision 43)."""

OF_AVERAGE = 0.27
"""Mean of ln κ with φ as the run's average by plain SGD: what a calibration's κ is of.

It was 0.5 on the seven tasks of the course before this one, whose average over a run lies 0.23 higher."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """What is known of κ, as a normal on the log scale.

    Attributes:
        log_mean: Mean of log κ.
        log_sd: Standard deviation of log κ for the run that is asked about.
        measurements: Sweeps, branches and followed runs of one's own behind it; 0 is the published spread alone.
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

    def log_mean_at(
        self, progress: float | None, *, relative_rate: float = 1.0, averages_gradients: bool | None = None
    ) -> float:
        """Mean of ln κ for the noise scale of a moment.

        Args:
            progress: Share of the plan that is done; None where nobody has said a plan.
            relative_rate: Learning rate then over the highest so far.
            averages_gradients: Whether the optimizer does, over steps; None where nobody knows, which is half-way. What
                was measured here was so by an optimizer like it.
        """
        course = _course(UNKNOWN_PROGRESS if progress is None else progress) + RATE_EXPONENT * math.log(relative_rate)
        if self.measurements:
            return course + self.log_mean - OF_AVERAGE
        share = 0.5 if averages_gradients is None else float(averages_gradients)
        return course + self.log_mean + share * OF_AVERAGED_GRADIENTS

    @property
    def odds_log_sd(self) -> float:
        """Standard deviation of ln κ for odds."""
        return self.log_sd if self.measurements else min(self.log_sd, ODDS_LOG_SD)


def _course(progress: float) -> float:
    """Straight in ln progress between the points of `COURSE`, flat outside."""
    if progress <= COURSE[0][0]:
        return COURSE[0][1]
    for (before, at_before), (after, at_after) in pairwise(COURSE):
        if progress <= after:
            share = math.log(progress / before) / math.log(after / before)
            return at_before + share * (at_after - at_before)
    return COURSE[-1][1]


UNCALIBRATED = Kappa(
    log_mean=0.0,
    log_sd=PUBLISHED_LOG10_SD * math.log(10),
    measurements=0,
    said=(
        "Not calibrated for this task: the critical batch could be 7 × smaller or larger. A short branch or a small "
        "sweep calibrates it."
    ),
)
"""κ = 1 with the published spread; see decision 0002 on the mean."""
