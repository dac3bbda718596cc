"""Further claims: noise grows during training, the best learning rate with the batch, and one curve fits every target.

Source: McCandlish et al. 2018, arXiv:1812.06162, sections 4.3 and 2.2, eq. 2.11.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_lab.reproduce.claim.critical_fit import CriticalFit
from noisescale_lab.reproduce.claim.task_result import TargetResult, TaskResult, TunedRun, run_nearest_critical

QUARTER = 0.25
FEWEST_RATES = 3


# The noise scales of the hooks against those of every single example's gradient on the same trajectories.


@dataclass(frozen=True, slots=True)
class HooksCheck:
    """One task.

    Attributes:
        task: Its name.
        num_windows: Over all batch sizes.
        num_bounded: Those with a bounded interval.
        num_compared: Those where the exact |G|² came out positive, too.
        num_holding: Those of them whose interval holds the exact value.
        median_ratio: Median of measured over exact; None where nothing was compared.
    """

    task: str
    num_windows: int
    num_bounded: int
    num_compared: int
    num_holding: int
    median_ratio: float | None


def hooks_check(results: Sequence[TaskResult]) -> tuple[HooksCheck, ...]:
    """One row a task."""
    return tuple(_check(result) for result in results)


def _check(result: TaskResult) -> HooksCheck:
    windows = [window for run in result.runs for window in run.windows]
    ratios, num_bounded, num_holding = [], 0, 0
    for window in windows:
        if window.value is None or window.low is None or window.high is None:
            continue
        num_bounded += 1
        if window.exact is not None:
            ratios.append(window.value / window.exact)
            num_holding += window.low <= window.exact <= window.high
    median = statistics.median(ratios) if ratios else None
    return HooksCheck(result.task, len(windows), num_bounded, len(ratios), num_holding, median)


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


@dataclass(frozen=True, slots=True)
class CurveMisfit:
    """Measured steps against the fitted curve, for one target.

    Attributes:
        task: Its name.
        target: Of the metric.
        num_points: Batch sizes.
        rms_factor: e to the root mean square of log steps over fitted steps.
        largest_factor: Of the point that is farthest off, above or below 1.
        farthest_batch: Where that is, in examples.
    """

    task: str
    target: float
    num_points: int
    rms_factor: float
    largest_factor: float
    farthest_batch: int


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


def curve_misfits(results: Sequence[TaskResult]) -> tuple[CurveMisfit, ...]:
    """One row for each target with a fit."""
    return tuple(
        _misfit(result.task, target, target.fit)
        for result in results
        for target in result.targets
        if target.fit is not None
    )


def _misfit(task: str, target: TargetResult, fitted: CriticalFit) -> CurveMisfit:
    errors = [
        (math.log(steps / (fitted.min_steps * (1 + fitted.critical_batch / batch))), batch)
        for batch, steps in target.points
    ]
    farthest, batch = max(errors, key=lambda item: abs(item[0]))
    return CurveMisfit(task, target.target, len(errors), math.exp(fitted.rms), math.exp(farthest), batch)


def _growth(result: TaskResult) -> Growth | None:
    run = run_nearest_critical(result)
    if run is None:
        return None
    steps = run.curve[-1][0]
    known = [(span.first / steps, span.value) for span in run.spans if span.value is not None]
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
