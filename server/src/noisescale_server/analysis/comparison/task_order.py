"""Whether tasks that should be harder have larger noise scales: chains of tasks, in the order expected.

The order expected, images and reinforcement learning: McCandlish et al. 2018, arXiv:1812.06162, section 1 and Table 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Rung:
    """One task of a chain.

    Attributes:
        task: Its name.
        low: Lower end of what its number may be; the number itself where it is a point.
        high: Upper end; None where only a lower bound is known.
    """

    task: str
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A chain and whether its numbers rise.

    Attributes:
        chain: What the tasks have in common.
        quantity: Which number.
        rungs: In the order expected, or for one's own tasks by size.
        holds: True where each number lies wholly above the one before; False where one lies wholly below it; None
            where two overlap and none falls.
        factor_low: The last is at least so many times the first.
        factor_high: And at most so many times; None where there is no upper end, or the first may be 0.
    """

    chain: str
    quantity: str
    rungs: tuple[Rung, ...]
    holds: bool | None
    factor_low: float
    factor_high: float | None


def task_order(chain: str, quantity: str, rungs: Sequence[Rung]) -> TaskOrder:
    """The verdict on a chain of two tasks or more."""
    first, last = rungs[0], rungs[-1]
    assert len(rungs) > 1, "one task has no order"
    return TaskOrder(
        chain=chain,
        quantity=quantity,
        rungs=tuple(rungs),
        holds=_holds(rungs),
        factor_low=0.0 if first.high is None else last.low / first.high,
        factor_high=last.high / first.low if last.high is not None and first.low > 0 else None,
    )


def _holds(rungs: Sequence[Rung]) -> bool | None:
    if any(_top(after) < before.low for before, after in pairwise(rungs)):
        return False
    return True if all(_top(before) < after.low for before, after in pairwise(rungs)) else None


def _top(rung: Rung) -> float:
    return math.inf if rung.high is None else rung.high
