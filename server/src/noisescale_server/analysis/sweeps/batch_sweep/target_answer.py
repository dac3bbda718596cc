"""What a sweep says about one target: steps at each batch size, the fit or the refusal, regimes and the curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from noisescale_server.analysis.sweeps.batch_sweep.bootstrap import Bootstrap, NoBootstrap, bootstrap
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.batch_sweep.regimes import LocalSlope, local_slopes
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint, as_sweep_point, best_of_grid
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting

NUM_CURVE_POINTS = 33

KEPT_FITS = 512
"""Fits that a process keeps by what went into them: pages ask for the same sweep again and again."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The fitted steps at a batch size, with the interval of the curve there (not of a new run)."""

    batch_size: float
    steps: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """What a sweep says about one target.

    Attributes:
        target: Value of the metric.
        points: By batch size.
        outcome: The fit, or why there is none.
        slopes: Between neighbouring batch sizes that reached the target.
        curve: Of the fit, from a quarter of the smallest batch size to four times the largest.
        bootstrap: Seeds drawn again, where that was asked for and there is a fit.
    """

    target: float
    points: tuple[TargetPoint, ...]
    outcome: SweepFit | Refusal
    slopes: tuple[LocalSlope, ...]
    curve: tuple[CurvePoint, ...]
    bootstrap: Bootstrap | NoBootstrap | None = None


def target_answer(
    settings: Sequence[Setting], target: float, *, level: float, with_bootstrap: bool = False
) -> TargetAnswer:
    """What the settings of a sweep say about one target; drawing seeds again costs some 0.1 s."""
    points = best_of_grid(settings, target)
    outcome = _kept_fit(tuple(as_sweep_point(point) for point in points), level)
    curve = fitted_curve(outcome, points) if isinstance(outcome, SweepFit) else ()
    known = [(point.batch_size, point.average.steps.steps) for point in points]
    slopes = local_slopes([(batch_size, steps) for batch_size, steps in known if steps is not None])
    again = None
    if with_bootstrap and isinstance(outcome, SweepFit):
        again = bootstrap(settings, points, outcome, target)
    return TargetAnswer(target, points, outcome, slopes, curve, again)


def fitted_curve(fit: SweepFit, points: Sequence[TargetPoint]) -> tuple[CurvePoint, ...]:
    """The curve and its interval at batch sizes evenly spaced on the log scale."""
    low, high = math.log(points[0].batch_size / 4), math.log(points[-1].batch_size * 4)
    found = []
    for number in range(NUM_CURVE_POINTS):
        log_batch = low + (high - low) * number / (NUM_CURVE_POINTS - 1)
        ends = fit.region.log_steps(log_batch)
        value = fit.log_steps(log_batch)
        found.append(CurvePoint(math.exp(log_batch), math.exp(value), math.exp(ends[0]), math.exp(ends[1])))
    return tuple(found)


@lru_cache(maxsize=KEPT_FITS)
def _kept_fit(points: tuple[SweepPoint, ...], level: float) -> SweepFit | Refusal:
    return fit_sweep(points, level=level)
