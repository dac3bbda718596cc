"""Where the time of a step goes, which lever is the cheapest, and what a batch beyond the memory costs.

Shares are what the job has measured: of the wall time of a step, the part that the accelerator computes, and the parts
that it waits for the host, for data and for the network. A part that is taken away whole speeds the run up by
1 / (1 - share): Amdahl 1967. Recomputing activations runs the forward pass again, a third more compute where a backward
costs two forwards (Chen et al. 2016, arXiv:1604.06174).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SHARES: Final = ("accelerator", "host", "data", "network")
METRIC_PREFIX: Final = "time/"
"""A job logs `time/data` and so on, as shares of a step's wall time."""
RECOMPUTED = 1 / 3
SQUARE_ROOT = "memory of activations falls to about 2 ÷ √(number of layers)"


@dataclass(frozen=True, slots=True)
class Lever:
    """What can be done about one part of the time.

    Attributes:
        share_of: Which part.
        share: Of the wall time of a step.
        most_times: Speed-up if the part went whole: nothing gets more out of it.
        what: To do, the cheapest thing first.
        effort: What it takes: 1 a setting, 2 a change of code, 3 other machines.
        effort_said: The same in words.
    """

    share_of: str
    share: float
    most_times: float
    what: str
    effort: int
    effort_said: str


EFFORTS: Final = {1: "a setting", 2: "a change of code", 3: "other machines"}
WHAT: Final[Mapping[str, tuple[str, int]]] = {
    "data": ("more loader workers, prefetching, and data on a local disk", 1),
    "network": ("fewer exchanges: a larger batch by accumulation, or overlap with the backward pass", 1),
    "host": ("fewer launches: compile the step or replay it as a graph; move simulation to cheaper CPUs", 2),
    "accelerator": ("mixed precision, then more or faster devices", 3),
}
LEAST_SHARE = 0.05
"""A smaller part is not worth a change: it buys less than 5.3 %."""


def levers(shares: Mapping[str, float]) -> tuple[Lever, ...]:
    """What can be done, the cheapest first: by effort, then by what it can bring; small parts are left out.

    Args:
        shares: Of the wall time of a step, by the names of `SHARES`.
    """
    found = [
        Lever(name, share, 1 / (1 - share), WHAT[name][0], WHAT[name][1], EFFORTS[WHAT[name][1]])
        for name in SHARES
        if (share := shares.get(name)) is not None and LEAST_SHARE <= share < 1
    ]
    return tuple(sorted(found, key=lambda one: (one.effort, -one.most_times)))


@dataclass(frozen=True, slots=True)
class BeyondMemory:
    """A batch that a device does not hold at once, and the two ways to it.

    Attributes:
        num_micro_batches: Passes that accumulate it; 1 where it fits.
        accumulation_times: Seconds of a step by accumulation over one whole pass, had it fitted.
        checkpointing_times: Seconds of a step that recomputes its activations, over the same.
    """

    num_micro_batches: int
    accumulation_times: float
    checkpointing_times: float


def beyond_memory(
    batch_per_device: float, largest_per_device: float, *, overhead_seconds: float, seconds_per_example: float
) -> BeyondMemory:
    """What a batch on one device costs in time by accumulation and by checkpointing.

    A pass takes α + β m. Accumulation pays α once a micro-batch; checkpointing computes a third more.

    Args:
        batch_per_device: Examples of one device in a step.
        largest_per_device: Examples that it holds at once.
        overhead_seconds: α of one pass.
        seconds_per_example: β.
    """
    passes = max(1, -int(-batch_per_device // largest_per_device))
    whole = overhead_seconds + seconds_per_example * batch_per_device
    accumulated = passes * overhead_seconds + seconds_per_example * batch_per_device
    recomputed = overhead_seconds + (1 + RECOMPUTED) * seconds_per_example * batch_per_device
    return BeyondMemory(passes, accumulated / whole, recomputed / whole)
