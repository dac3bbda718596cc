"""The best learning rate at each batch size, and whether it was the last one tried."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.batch_sweep.sweep import SweepPoint, sweep_point
from noisescale_server.analysis.steps_to_target.steps import Outcome, StepsToTarget


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a sweep.

    Attributes:
        batch_size: Examples per optimizer step.
        learning_rate: The rate that was tried.
        steps: Steps to the target.
    """

    batch_size: float
    learning_rate: float
    steps: StepsToTarget


def best_of_grid(trials: Sequence[Trial]) -> tuple[SweepPoint, ...]:
    """At each batch size the runs of its best learning rate; batch sizes where every run diverged are left out.

    The best one has the smallest mean of log steps, bounds taken at their lower end, among the rates at which most
    runs reached the target. Where at no rate they did, the sweep knows only a bound: the longest run without success.
    A minimum over noisy trials reads low, by about the noise of a trial where neighbouring rates are equally good.
    """
    grid: dict[float, dict[float, list[StepsToTarget]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        grid[trial.batch_size][trial.learning_rate].append(trial.steps)
    points = (_best(batch_size, dict(rates)) for batch_size, rates in sorted(grid.items()))
    return tuple(point for point in points if point is not None)


def _best(batch_size: float, rates: dict[float, list[StepsToTarget]]) -> SweepPoint | None:
    reached = {rate: runs for rate, runs in rates.items() if 2 * _num_reached(runs) > len(runs)}
    if not reached:
        bounds = [run for runs in rates.values() for run in runs if run.outcome is not Outcome.INFEASIBLE]
        longest = max(bounds, key=lambda run: run.low, default=None)
        return None if longest is None else SweepPoint(batch_size, None, ((longest.low, float("inf")),))
    points = {rate: sweep_point(batch_size, runs) for rate, runs in reached.items()}
    best = min(reached, key=lambda rate: _mean_log_steps(points[rate]))
    is_at_edge = len(rates) > 1 and best in (min(rates), max(rates))
    return sweep_point(batch_size, reached[best], is_at_grid_edge=is_at_edge)


def _num_reached(runs: Sequence[StepsToTarget]) -> int:
    return sum(run.outcome is Outcome.REACHED for run in runs)


def _mean_log_steps(point: SweepPoint | None) -> float:
    assert point is not None, "most of its runs reached the target"
    return point.typical_log_steps
