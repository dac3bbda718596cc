"""The best learning rate at each batch size, and whether it was the last one tried."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.sweeps.points.steps import Outcome, StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import INTERPOLATION_LIMIT, SweepPoint, sweep_point
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import SeedAverage, seed_average
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, by_batch_size


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


def best_of_grid(settings: Sequence[Setting], target: float) -> tuple[TargetPoint, ...]:
    """At each batch size the learning rate that reaches the target first; where none does, the one nearest to it.

    Batch sizes at which every rate diverged are left out. A minimum over noisy trials reads low, by about their noise
    where neighbouring rates are equally good: `batch_sweep/bootstrap.py` says by how much.

    Args:
        settings: In the order of `settings_of`.
        target: Value of the metric.
    """
    found = []
    for batch_size, here in by_batch_size(settings):
        curves = {setting.lr: setting.curves for setting in here if setting.curves}
        ranks = {lr: seed_average(some, target, with_repeats=False) for lr, some in curves.items()}
        ranked = [lr for lr, found in ranks.items() if found.steps.outcome is not Outcome.INFEASIBLE]
        if not ranked:
            continue
        lr = min(ranked, key=lambda rate: ranks[rate].rank)
        tried = [setting.lr for setting in here]
        is_at_edge = len(tried) > 1 and lr in (min(tried), max(tried))
        found.append(TargetPoint(batch_size, lr, len(tried), is_at_edge, seed_average(curves[lr], target)))
    return tuple(found)


def as_sweep_point(point: TargetPoint) -> SweepPoint:
    """What the fit needs of it: repeats where the crossing is well known, an interval or a bound where it is not."""
    found = point.average
    if found.repeats is not None and _is_close(found.steps):
        return SweepPoint(point.batch_size, found.repeats, is_at_grid_edge=point.is_at_grid_edge)
    single = sweep_point(point.batch_size, [found.steps], is_at_grid_edge=point.is_at_grid_edge)
    assert single is not None, "an average of curves did not diverge"
    return single


def _is_close(steps: StepsToTarget) -> bool:
    return steps.low > 0 and math.log(steps.high / steps.low) <= INTERPOLATION_LIMIT
