"""Two more claims: the noise scale grows during training, and the best learning rate grows with the batch size.

Source: McCandlish et al. 2018, arXiv:1812.06162, sections 4.3 and 2.2.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale.reproduce.claim.task_result import TaskResult, TunedRun

QUARTER = 0.25
FEWEST_RATES = 3


@dataclass(frozen=True, slots=True)
class Growth:
    """Noise scale late in the tuned run nearest B_crit, over that early in it.

    Attributes:
        task: Its name.
        early: Mean over the windows that begin in the first quarter of the run, examples.
        late: Mean over those that begin in the last quarter.
        lowest_at: Share of the run at which the smallest window begins: above 0 it dips first.
    """

    task: str
    early: float
    late: float
    lowest_at: float


@dataclass(frozen=True, slots=True)
class RateGrowth:
    """Exponents of the best learning rate over the batch size.

    Attributes:
        task: Its name.
        optimizer: "sgd" or "adam".
        below: Slope of log rate on log B at batch sizes up to B_crit; None with fewer than three.
        above: The same from B_crit on.
        over_all: Over all batch sizes.
    """

    task: str
    optimizer: str
    below: float | None
    above: float | None
    over_all: float | None


def growth(results: Sequence[TaskResult]) -> tuple[Growth, ...]:
    """One row for each task whose first and last quarter have windows with a value."""
    found = (_growth(result) for result in results)
    return tuple(one for one in found if one is not None)


def rate_growth(results: Sequence[TaskResult]) -> tuple[RateGrowth, ...]:
    """One row for each task with a B_crit for its hardest target."""
    found = []
    for result in results:
        fitted = result.targets[-1].fit
        if fitted is not None:
            critical = fitted.critical_batch
            below = [run for run in result.runs if run.batch <= critical]
            above = [run for run in result.runs if run.batch >= critical]
            exponents = (_exponent(below), _exponent(above), _exponent(result.runs))
            found.append(RateGrowth(result.task, result.optimizer, *exponents))
    return tuple(found)


def _growth(result: TaskResult) -> Growth | None:
    fitted = result.targets[-1].fit
    if fitted is None or not result.runs:
        return None
    run = min(result.runs, key=lambda one: abs(math.log(one.batch / fitted.critical_batch)))
    steps = sum(window.num_steps for window in run.windows)
    known = [(window.first / steps, window.value) for window in run.windows if window.value is not None]
    early = [value for at, value in known if at < QUARTER]
    late = [value for at, value in known if at >= 1 - QUARTER]
    if not early or not late:
        return None
    lowest_at, _ = min(known, key=lambda item: item[1])
    return Growth(result.task, statistics.fmean(early), statistics.fmean(late), lowest_at)


def _exponent(runs: Sequence[TunedRun]) -> float | None:
    if len(runs) < FEWEST_RATES:
        return None
    logs = [(math.log(run.batch), math.log(run.lr)) for run in runs]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
