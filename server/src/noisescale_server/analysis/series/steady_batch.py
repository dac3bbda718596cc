"""Whether a run trained at one batch size, and at which: from the batches of its windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high

SAME_BATCH = 1.05
"""Batches that differ by 5 % are one: the last steps of epochs are smaller."""

ELSEWHERE = 0.05
"""Share of the windows that may be at another batch: they change the steps of a run by no more than that."""

NEIGHBOURS = 4
"""Windows in a row, of which the second largest batch is the usual one: where a window is a step or two, every other
one may be the rest of an epoch."""


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """What some steps of a run in a row say of its batch, in examples.

    Attributes:
        largest: Of these steps.
        mean: Over them.
    """

    largest: float
    mean: float


def is_same_batch(one: float, other: float) -> bool:
    """Whether two batches, both positive, differ by no more than the rests of epochs make them."""
    return 1 / SAME_BATCH <= one / other <= SAME_BATCH


def steady_batch(windows: Sequence[BatchWindow], newest: float) -> float | None:
    """The one batch that a run trained at; None where it changed by more than 5 % for more than 5 % of the windows.

    A window is at a batch by the largest of its steps or by their mean: by the first a smaller last step of each epoch
    says nothing, by the second steps that all differ a little, as those that are filled up with tokens.

    Args:
        windows: Of equally many steps each, in order.
        newest: As the run's row says it.
    """
    usual = _usual([one.largest for one in windows])
    # a change at the very end is the newest batch and not the run's
    candidates: list[float] = [newest, *([median_high(usual)] if usual else ())]
    for batch in candidates:
        num_elsewhere = sum(
            not is_same_batch(largest, batch) and not is_same_batch(one.mean, batch)
            for largest, one in zip(usual, windows, strict=True)
        )
        if num_elsewhere <= ELSEWHERE * len(windows):
            return batch
    return None


def _usual(largest: Sequence[float]) -> list[float]:
    """At each window the second largest of the last four; the first ones look ahead."""
    found = []
    for place in range(len(largest)):
        last = max(place + 1, min(NEIGHBOURS, len(largest)))
        near = sorted(largest[max(0, last - NEIGHBOURS) : last])
        found.append(near[-2] if len(near) > 1 else near[0])
    return found
