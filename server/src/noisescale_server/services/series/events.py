"""What happened along a run that a chart should mark: batch or learning rate changed, a job resumed, a branch left."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from noisescale_server.services.series.live import LiveInterval
from noisescale_server.storage.series.series import PointColumns

LR_FACTOR = 1.25
"""Smaller changes between neighbouring points are a schedule at work, not an event."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change at a step; `before` and `after` are of the batch or the learning rate, None for the other kinds."""

    step: int
    kind: Literal["batch", "lr", "resumed", "branch"]
    before: float | None = None
    after: float | None = None


def events_of(
    points: PointColumns, intervals: Sequence[LiveInterval], *, run_low: int, branch_steps: Sequence[int]
) -> list[Event]:
    """The events of the points, in the order of steps.

    Args:
        points: What is shown.
        intervals: The live intervals shown.
        run_low: First step of the run, where the first stream did not take over from any other.
        branch_steps: Where branches left the run.
    """
    resumed = [Event(step, "resumed") for step in resumptions(intervals, run_low=run_low)]
    shown = [step for step in branch_steps if any(one.low <= step <= one.high for one in intervals)]
    branches = [Event(step, "branch") for step in shown]
    return sorted([*_lr_events(points), *_batch_events(points), *resumed, *branches], key=lambda event: event.step)


def resumptions(intervals: Sequence[LiveInterval], *, run_low: int) -> list[int]:
    """First steps of streams that took over from another one.

    Args:
        intervals: Live intervals, in the order of steps.
        run_low: First step of the run, where the first stream did not take over from any other.
    """
    return [one.low for one in intervals if one.is_first and one.low > run_low]


def _lr_events(points: PointColumns) -> list[Event]:
    rates = [(step, lr) for step, lr in zip(points.step_last, points.lr_last, strict=True) if lr is not None and lr > 0]
    return [
        Event(step, "lr", before, after)
        for (_, before), (step, after) in pairwise(rates)
        if max(before, after) >= LR_FACTOR * min(before, after)
    ]


def _batch_events(points: PointColumns) -> list[Event]:
    """Changes between points of one batch size each, that last for two points: an epoch's short last batch is none."""
    rows = zip(points.step_last, points.global_batch_min, points.global_batch_max, strict=True)
    steady = [(step, low) for step, low, high in rows if low is not None and low == high]
    if not steady:
        return []
    events, current = [], steady[0][1]
    for (step, batch), (_, following) in pairwise([*steady, steady[-1]]):
        if batch != current and batch == following:
            events.append(Event(step, "batch", current, batch))
            current = batch
    return events
