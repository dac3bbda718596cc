"""A sweep: what is known of the steps to one target, at several batch sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.points.steps import Outcome, StepsToTarget


@dataclass(frozen=True, slots=True)
class Repeats:
    """Runs of one batch size that reached the target, summarised.

    Attributes:
        count: How many.
        mean_log_steps: Mean of log S over them.
        squares: Sum of squared deviations of log S from that mean.
    """

    count: int
    mean_log_steps: float
    squares: float

    @classmethod
    def from_moments(cls, *, count: int, mean: float, sd: float) -> "Repeats":
        """From the mean and standard deviation of S itself, as published; S is taken as log-normal.

        Raises:
            AnalysisError: Unless count and mean are positive and sd is not negative.
        """
        if count < 1 or not 0 < mean < math.inf or not 0 <= sd < math.inf:
            raise AnalysisError(f"need count >= 1, mean > 0 and sd >= 0, got {count}, {mean} and {sd}")
        log_variance = math.log1p((sd / mean) ** 2)
        return cls(count, math.log(mean) - log_variance / 2, log_variance * (count - 1))

    @classmethod
    def from_steps(cls, steps: Sequence[float]) -> "Repeats":
        """From the steps of each run."""
        logs = [math.log(value) for value in steps]
        mean = math.fsum(logs) / len(logs)
        return cls(len(logs), mean, math.fsum((value - mean) ** 2 for value in logs))


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """What is known at one batch size, at its best learning rate.

    Attributes:
        batch_size: Examples per optimizer step.
        repeats: The runs whose steps are known, or None.
        censored: The others that count: (low, high) in steps; high is infinite where the target was not reached.
        is_at_grid_edge: The best learning rate was the smallest or largest that was tried.
    """

    batch_size: float
    repeats: Repeats | None
    censored: tuple[tuple[float, float], ...] = ()
    is_at_grid_edge: bool = False

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            AnalysisError: If the batch size is not a positive number or nothing is known.
        """
        if not 0 < self.batch_size < math.inf:
            raise AnalysisError(f"batch_size must be positive and finite, got {self.batch_size}")
        if self.repeats is None and not self.censored:
            raise AnalysisError(f"nothing is known at batch_size {self.batch_size:g}: leave the point out")
        for low, high in self.censored:
            if not 0 <= low < high or high <= 0:
                raise AnalysisError(f"a censored run needs 0 <= low < high, got ({low}, {high}]")

    @property
    def typical_log_steps(self) -> float:
        """Mean log S, with bounds at their lower end and intervals in the middle; only for comparing learning rates."""
        known = self.repeats or Repeats(0, 0.0, 0.0)
        ends = [(max(low, 1.0), high) for low, high in self.censored]
        logs = [math.log(low * (high if high < math.inf else low)) / 2 for low, high in ends]
        return (known.count * known.mean_log_steps + math.fsum(logs)) / (known.count + len(logs))


INTERPOLATION_LIMIT = math.log(1.1)
"""Evaluations closer than 10 % of the steps: the interpolated crossing is used, wider apart the whole interval.

Between neighbouring evaluations a loss is close to a power of the step; over a wider gap nobody knows."""


def sweep_point(
    batch_size: float, runs: Sequence[StepsToTarget], *, is_at_grid_edge: bool = False
) -> SweepPoint | None:
    """What runs of one batch size and learning rate say; None if every one of them diverged."""
    exact, censored = [], []
    for run in runs:
        if run.outcome is Outcome.INFEASIBLE:
            continue
        if run.steps is not None and run.low > 0 and math.log(run.high / run.low) <= INTERPOLATION_LIMIT:
            exact.append(run.steps)
        else:
            censored.append((run.low, run.high))
    if not exact and not censored:
        return None
    return SweepPoint(
        batch_size,
        Repeats.from_steps(exact) if exact else None,
        tuple(censored),
        is_at_grid_edge=is_at_grid_edge,
    )
