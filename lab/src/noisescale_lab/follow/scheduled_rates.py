"""Scales the learning rates of an optimizer together with the schedule that sets them.

A schedule goes on as it was, times a factor: drops, decay and warm-up stay where they are. What a schedule multiplies
or computes from is scaled with it, in the way PyTorch 2.13 keeps it: `base_lrs` of each schedule (LambdaLR, restarts of
a cosine), `eta_min` of cosines, `max_lrs` of CyclicLR, `min_lrs` of ReduceLROnPlateau, and in the groups `initial_lr`,
and `max_lr` and `min_lr` of OneCycleLR. Schedules that multiply the present rate need nothing but that.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any, Protocol

GROUP_RATES = ("lr", "initial_lr")
ONE_CYCLE_RATES = ("max_lr", "min_lr")
LISTS_OF_RATES = ("base_lrs", "max_lrs", "min_lrs")


class HasGroups(Protocol):
    """An optimizer."""

    param_groups: list[dict[str, Any]]


class ScheduledRates:
    """The learning rates of an optimizer, each group by its own, times one factor.

    Args:
        optimizer: PyTorch's, or one like it.
        scheduler: What sets its learning rates; None: nothing does.

    Attributes:
        factor: On the rates that there were at the beginning.
    """

    def __init__(self, optimizer: HasGroups, scheduler: object | None) -> None:
        self.factor = 1.0
        self._optimizer = optimizer
        self._schedules = [] if scheduler is None else list(_flat(scheduler))

    def scheduled(self) -> float:
        """The first group's rate without the factor; waits for the device where it is kept there."""
        return float(self._optimizer.param_groups[0]["lr"]) / self.factor

    def scale_to(self, factor: float) -> None:
        """Make the factor this one."""
        change = factor / self.factor
        names = GROUP_RATES + (ONE_CYCLE_RATES if any(map(_is_one_cycle, self._schedules)) else ())
        for group in self._optimizer.param_groups:
            for name in names:
                if name in group:
                    _multiply(group, name, change)
        for schedule in self._schedules:
            _scale(schedule, change)
        self.factor = factor


def _flat(scheduler: object) -> Iterator[object]:
    """A schedule and those inside it: of SequentialLR, ChainedScheduler, and what Accelerate wraps."""
    yield scheduler
    wrapped = getattr(scheduler, "scheduler", None)
    for inside in [*getattr(scheduler, "_schedulers", ()), *([] if wrapped is None else [wrapped])]:
        yield from _flat(inside)


def _is_one_cycle(schedule: object) -> bool:
    return type(schedule).__name__ == "OneCycleLR"


def _scale(schedule: object, change: float) -> None:
    kept = vars(schedule)
    for name in LISTS_OF_RATES:
        if isinstance(kept.get(name), list):
            kept[name] = [rate * change for rate in kept[name]]
    if "eta_min" in kept:
        _multiply(kept, "eta_min", change)


def _multiply(kept: MutableMapping[str, Any], name: str, change: float) -> None:
    """A rate on a device is changed in place, as a captured graph reads it there."""
    rate = kept[name]
    if hasattr(rate, "mul_"):
        rate.mul_(change)
    else:
        kept[name] = rate * change
