"""The noise scales of the hooks against those of every single example's gradient on the same trajectories."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_lab.reproduce.claim.task_result import TaskResult


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
