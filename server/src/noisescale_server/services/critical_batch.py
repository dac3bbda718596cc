"""B_crit of a sweep: steps to each target at the best learning rate of each batch size, and the fit to them."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.batch_sweep.hyperbola import log_steps_ratio
from noisescale_server.analysis.batch_sweep.refusal import Refusal
from noisescale_server.analysis.batch_sweep.sweep import INTERPOLATION_LIMIT, SweepPoint, sweep_point
from noisescale_server.analysis.batch_sweep.sweep_fit import SweepFit
from noisescale_server.analysis.steps_to_target.steps import StepsToTarget
from noisescale_server.services import sweep_curves, sweeps
from noisescale_server.services.errors import refuse
from noisescale_server.services.seed_average import SeedAverage, average
from noisescale_server.services.sweep_curves import RunCurve
from noisescale_server.services.sweeps import Goal
from noisescale_server.storage.sweeps import SweepRow
from noisescale_server.storage.tables import SweepRun

NUM_CURVE_POINTS = 33

PERFECT_SLOPE = -0.9
MAXIMAL_SLOPE = -0.1
"""d log S / d log B of neighbouring batch sizes below and above which scaling is called perfect and maximal.

Source of the three regimes: Shallue et al. 2018, arXiv:1811.03600, section 4.1; the thresholds are ours."""

Regime = Literal["perfect", "diminishing", "maximal"]


@dataclass(frozen=True, slots=True)
class TargetPoint:
    """Steps to a target at one batch size, at the best of its learning rates.

    Attributes:
        batch_size: In examples.
        lr: The best learning rate of those tried.
        num_learning_rates: How many were tried, divergences included.
        is_at_grid_edge: The best was the smallest or largest of several.
        average: Of its seeds.
    """

    batch_size: float
    lr: float
    num_learning_rates: int
    is_at_grid_edge: bool
    average: SeedAverage


@dataclass(frozen=True, slots=True)
class LocalSlope:
    """How steps fall between two neighbouring batch sizes."""

    from_batch_size: float
    to_batch_size: float
    slope: float
    regime: Regime


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
    """

    target: float
    points: tuple[TargetPoint, ...]
    outcome: SweepFit | Refusal
    slopes: tuple[LocalSlope, ...]
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class CriticalBatch:
    """A sweep and what it says about each target."""

    row: SweepRow
    targets: tuple[TargetAnswer, ...]


async def of_sweep(session: AsyncSession, sweep_id: UUID, *, targets: Sequence[float], level: float) -> CriticalBatch:
    """The fits of a sweep for the targets asked for, by default its own.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: When neither the sweep nor the request names a target.
    """
    view = await sweeps.get(session, sweep_id)
    wanted = list(targets) or view.row.sweep.targets
    if not wanted:
        raise refuse("target", "is required: the sweep was created without targets")
    curves = await sweep_curves.of_sweep(session, view.row.sweep, view.runs)
    goal: Goal = "max" if view.row.sweep.goal == "max" else "min"
    # off the event loop: fits of many targets take a second of arithmetic
    found = await asyncio.to_thread(
        lambda: tuple(answer(target, goal, view.runs, curves, level=level) for target in wanted)
    )
    return CriticalBatch(view.row, found)


def answer(
    target: float, goal: Goal, attached: Sequence[SweepRun], curves: Sequence[RunCurve], *, level: float
) -> TargetAnswer:
    """What the runs say about one target."""
    points = best_points(target, goal, attached, curves)
    outcome = fit_sweep([_sweep_point(point) for point in points], level=level)
    curve = fitted_curve(outcome, points) if isinstance(outcome, SweepFit) else ()
    return TargetAnswer(target, points, outcome, local_slopes(points), curve)


def best_points(
    target: float, goal: Goal, attached: Sequence[SweepRun], curves: Sequence[RunCurve]
) -> tuple[TargetPoint, ...]:
    """At each batch size the learning rate that reaches the target first; where none does, the one nearest to it."""
    found = []
    ordered = sorted(curves, key=lambda curve: (curve.run.batch_size, curve.run.lr))
    for batch_size, here in groupby(ordered, key=lambda curve: curve.run.batch_size):
        by_rate = {lr: list(seeds) for lr, seeds in groupby(here, key=lambda curve: curve.run.lr)}
        averages = {lr: average(seeds, target, goal) for lr, seeds in by_rate.items()}
        lr = min(averages, key=lambda rate: averages[rate].rank)
        tried = {run.lr for run in attached if run.batch_size == batch_size}
        is_at_edge = len(tried) > 1 and lr in (min(tried), max(tried))
        found.append(TargetPoint(batch_size, lr, len(tried), is_at_edge, averages[lr]))
    return tuple(found)


def local_slopes(points: Sequence[TargetPoint]) -> tuple[LocalSlope, ...]:
    """The slopes d log S / d log B between neighbours, and the regime of each."""
    known = [(point.batch_size, point.average.steps.steps) for point in points if point.average.steps.steps is not None]
    found = []
    for (small, small_steps), (large, large_steps) in pairwise(known):
        slope = math.log(large_steps / small_steps) / math.log(large / small)
        found.append(LocalSlope(small, large, slope, _regime(slope)))
    return tuple(found)


def fitted_curve(fit: SweepFit, points: Sequence[TargetPoint]) -> tuple[CurvePoint, ...]:
    """The curve and its interval at batch sizes evenly spaced on the log scale."""
    low, high = math.log(points[0].batch_size / 4), math.log(points[-1].batch_size * 4)
    log_min_steps, log_critical = math.log(fit.min_steps.value), math.log(fit.critical_batch.value)
    found = []
    for number in range(NUM_CURVE_POINTS):
        log_batch = low + (high - low) * number / (NUM_CURVE_POINTS - 1)
        value = log_min_steps + float(log_steps_ratio(log_critical, log_batch))
        ends = fit.region.log_steps(log_batch)
        found.append(CurvePoint(math.exp(log_batch), math.exp(value), math.exp(ends[0]), math.exp(ends[1])))
    return tuple(found)


def _regime(slope: float) -> Regime:
    if slope <= PERFECT_SLOPE:
        return "perfect"
    return "maximal" if slope >= MAXIMAL_SLOPE else "diminishing"


def _sweep_point(point: TargetPoint) -> SweepPoint:
    found = point.average
    if found.repeats is not None and _is_close(found.steps):
        return SweepPoint(point.batch_size, found.repeats, is_at_grid_edge=point.is_at_grid_edge)
    single = sweep_point(point.batch_size, [found.steps], is_at_grid_edge=point.is_at_grid_edge)
    assert single is not None, "an average of curves did not diverge"
    return single


def _is_close(steps: StepsToTarget) -> bool:
    return steps.low > 0 and math.log(steps.high / steps.low) <= INTERPOLATION_LIMIT
