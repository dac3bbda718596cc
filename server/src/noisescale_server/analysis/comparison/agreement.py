"""How well noise scales predict critical batches over several tasks.

r² of the logarithms over six orders of magnitude says little about a factor of five, so κ = B_crit / B_simple and its
spread are given with it. The headline chart of McCandlish et al. 2018, arXiv:1812.06162, Table 1.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive

FEWEST_TASKS = 3
"""Below, r² says nothing."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Noise scales against critical batches, on the log scale.

    Attributes:
        num_tasks: How many pairs.
        r_squared: Squared correlation of the logarithms.
        slope: Of log B_crit on log B_simple, least squares.
        mean_log10_kappa: Mean of log10 κ.
        sd_log10_kappa: Its standard deviation over tasks.
        median_abs_log10_kappa: Median of |log10 κ|.
    """

    num_tasks: int
    r_squared: float
    slope: float
    mean_log10_kappa: float
    sd_log10_kappa: float
    median_abs_log10_kappa: float

    @property
    def spread(self) -> float:
        """κ lies within × or ÷ this factor of its typical value, one standard deviation."""
        return math.pow(10.0, self.sd_log10_kappa)


def kappa(*, critical_batch: float, noise_scale: float) -> float:
    """κ = B_crit / B_simple.

    Args:
        critical_batch: In the unit of the noise scale.
        noise_scale: B_simple.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("compare resolved numbers", critical_batch=critical_batch, noise_scale=noise_scale)
    return critical_batch / noise_scale


def agreement(pairs: Sequence[tuple[float, float]]) -> Agreement:
    """How well the noise scales of tasks predict their critical batches.

    Args:
        pairs: Noise scale and critical batch of each task, both in that task's unit.

    Raises:
        DomainError: With fewer than three tasks, or where one number is the same for all.
    """
    if len(pairs) < FEWEST_TASKS:
        raise DomainError(f"pairs must hold at least {FEWEST_TASKS} tasks, got {len(pairs)}: r² says nothing of fewer")
    kappas = [math.log10(kappa(critical_batch=critical, noise_scale=scale)) for scale, critical in pairs]
    scales = [math.log10(scale) for scale, _ in pairs]
    criticals = [math.log10(critical) for _, critical in pairs]
    if min(scales) == max(scales) or min(criticals) == max(criticals):
        raise DomainError("pairs must differ between tasks, got one number for all: no correlation exists")
    return Agreement(
        num_tasks=len(pairs),
        r_squared=statistics.correlation(scales, criticals) ** 2,
        slope=statistics.linear_regression(scales, criticals).slope,
        mean_log10_kappa=statistics.fmean(kappas),
        sd_log10_kappa=statistics.stdev(kappas),
        median_abs_log10_kappa=statistics.median(abs(value) for value in kappas),
    )
