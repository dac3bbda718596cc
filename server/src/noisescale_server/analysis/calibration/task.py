"""B_crit of a task's next run, before its first step: what its sweeps measured, and κ × the noise scale of its runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.analysis.calibration.levels import LEVEL, Observation, Spread, next_of_task
from noisescale_server.analysis.calibration.measurement import TypicalNoiseScale, log_interval
from noisescale_server.analysis.estimate import Bounds, Estimate

BETWEEN_SWEEPS = Spread(median=0.2, log_sd=0.6)
"""What B_crit of one task differs by from one training to the next: ×/÷ 1.2, between 1.06 and 1.9. Chosen: another
target, seed or schedule moves it, and few have measured the same sweep twice."""

VAGUE_SD = 5.0
"""Without a noise scale nothing but the sweeps is known: ×/÷ 150 about them."""


@dataclass(frozen=True, slots=True)
class NextCriticalBatch:
    """B_crit of the next run of a task.

    Attributes:
        value: In examples.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def next_critical_batch(
    measured: Sequence[Estimate | Bounds],
    noise_scale: TypicalNoiseScale | None,
    *,
    kappa: Kappa,
    kappa_of_others: Kappa,
) -> NextCriticalBatch | None:
    """B_crit of the next run; None where neither a sweep has fitted one nor a run has shown a noise scale.

    Where sweeps of the task are known they count once, as B_crit itself: the κ that goes with the runs is then that of
    other tasks alone, since the task's own comes from the same sweeps.

    Args:
        measured: B_crit of each sweep of the task and optimizer, or what a refused fit leaves.
        noise_scale: Of earlier runs of the task.
        kappa: Of this task.
        kappa_of_others: Of other tasks of its family alone.
    """
    known = [found for one in measured if (found := log_interval(one)) is not None]
    observations = [Observation(low, high, error) for low, high, error in known]
    values = [low for low, high, _ in known if low == high]
    if noise_scale is None:
        return _ends(observations, fmean(values), VAGUE_SD) if values else None
    used = kappa_of_others if observations else kappa
    mean, sd = math.log(noise_scale.value) + used.log_mean, math.hypot(used.log_sd, noise_scale.log_sd)
    if observations:
        return _ends(observations, mean, sd)
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * sd
    return NextCriticalBatch(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def _ends(observations: Sequence[Observation], mean: float, sd: float) -> NextCriticalBatch:
    found = next_of_task(observations, mean=mean, sd=sd, between_runs=BETWEEN_SWEEPS)
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * found.sd
    return NextCriticalBatch(math.exp(found.mean), math.exp(found.mean - reach), math.exp(found.mean + reach))
