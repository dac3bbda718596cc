"""κ for the next run: from its task's sweeps, branches and followed runs, from other tasks of its family, or the table.

Tasks of one family that are trained by one kind of optimizer share a mean, which they differ from; runs of a task
differ as well. Both spreads start from what published tasks show and follow one's own measurements.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

from noisescale_core.theory.learning_rate import RuleFamily, family_of
from noisescale_server.analysis.calibration.calibration import PUBLISHED_LOG10_SD, UNCALIBRATED, Kappa
from noisescale_server.analysis.calibration.levels import Levels, Observation, Spread, next_run

KEPT = 1_024

Kind = Literal["sweep", "branch", "followed"]
"""What measures κ: a sweep, branches of a run, or a run whose batch changed, held against a sweep."""

NAMES: Final[Mapping[Kind, tuple[str, str]]] = MappingProxyType(
    {"sweep": ("sweep", "sweeps"), "branch": ("branch", "branches"), "followed": ("followed run", "followed runs")}
)

BETWEEN_TASKS = Spread(median=0.55, log_sd=0.6)
"""Of one family: ×/÷ 1.7, between 1.2 and 6 with 95 % probability.

Table 1 of McCandlish et al. 2018, arXiv:1812.06162, has two families with more than one task and a measured critical
batch: four image classifiers, log₁₀ κ from -0.89 to -0.30, and two autoencoders with the same κ; pooled 0.55 as a
natural logarithm, on 4 degrees of freedom."""

BETWEEN_RUNS = Spread(median=0.35, log_sd=0.6)
"""Of one task with tuned learning rates: ×/÷ 1.4, between 1.1 and 3. Chosen, not published: sweeps correct it."""

PUBLISHED = Levels(
    mean=UNCALIBRATED.log_mean,
    # single runs of single tasks are what the table holds: its spread has all three levels in it
    sd=math.sqrt((PUBLISHED_LOG10_SD * math.log(10)) ** 2 - BETWEEN_TASKS.median**2 - BETWEEN_RUNS.median**2),
    between_tasks=BETWEEN_TASKS,
    between_runs=BETWEEN_RUNS,
)


@dataclass(frozen=True, slots=True)
class KappaMeasurement:
    """log κ as one sweep, branch or followed run measured it.

    Attributes:
        kind: Which of them.
        observation: The logarithm.
    """

    kind: Kind
    observation: Observation


def optimizer_kind(optimizer: str | None) -> str:
    """Optimizers that share a κ: SGD, Adam and its relatives, each other one alone; empty where it is not known."""
    family = family_of(optimizer)
    return (optimizer or "").casefold() if family is RuleFamily.OTHER else family.value


@lru_cache(maxsize=KEPT)
def kappa_of(own: tuple[KappaMeasurement, ...], others: tuple[tuple[KappaMeasurement, ...], ...]) -> Kappa:
    """κ of a new run of a task; remembered, since every run of it asks.

    Args:
        own: Measurements of the task itself.
        others: Of each other task of its family, for the same kind of optimizer.
    """
    told = [task for task in others if task]
    if not own and not told:
        return UNCALIBRATED
    found = next_run([one.observation for one in own], [[one.observation for one in task] for task in told], PUBLISHED)
    used = own or [one for task in told for one in task]
    return Kappa(found.mean, found.sd, len(used), _said(used, found.mean, found.sd, is_own=bool(own)))


def _said(used: Sequence[KappaMeasurement], mean: float, sd: float, *, is_own: bool) -> str:
    counts = [(sum(one.kind == kind for one in used), names) for kind, names in NAMES.items()]
    *others, last = [f"{count} {names[count > 1]}" for count, names in counts if count]
    named = f"{', '.join(others)} and {last}" if others else last
    where = f"here on {named}" if is_own else f"on {named} of other tasks of this family"
    return f"Calibrated {where}: κ {math.exp(mean):.2g}, ×/÷ {math.exp(sd):.2g}."
