"""At which updates the path is looked at: all in the first steps, later one of sixteen, at a place drawn at random."""

import random

LONGEST, LONGEST_OF_CHEAP_STEPS = 16, 128
"""Updates of a stretch that has one look; where a look takes long beside a step they may be more, and four times as
many where looks have but a quarter of `SHARE`."""

GROWTH = 4
"""A stretch is a quarter of the updates before it until then: a young path is known as well as an old one."""

SHARE = 0.01
"""Of the training's time that looks may take once stretches no longer grow."""

OF_A_BUDGET = 0.25
"""Of a budget that looks may take, if it is less."""


def share_of_looks(overhead: float | None) -> float:
    """Of the training's time that looks may take.

    Args:
        overhead: A budget for all that measuring takes; None: there is none.
    """
    return SHARE if overhead is None else min(SHARE, OF_A_BUDGET * overhead)


class LookPlan:
    """Draws the next update to look at.

    The same on every rank: it depends on the number of updates alone, unless `adapt()` is called.

    Args:
        share: Of the training's time that looks may take.

    Attributes:
        next: The update to look at, from 0.
        longest: Updates of a stretch at most.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._share = share
        self._most = round(LONGEST_OF_CHEAP_STEPS * min(1 / OF_A_BUDGET, SHARE / share))
        self.next = 0
        self.longest = LONGEST
        self._end = 1

    def advance(self) -> None:
        """Draw from the next stretch."""
        start = self._end
        length = max(1, min(self.longest, start // GROWTH))
        self._end = start + length
        # a generator of our own for each stretch: neither the training's is touched, nor is there a state to keep
        self.next = start + random.Random(start).randrange(length)  # noqa: S311  # no secret

    def adapt(self, look_seconds: float, step_seconds: float) -> None:
        """Make stretches longer where a look costs more than its share of the steps.

        Args:
            look_seconds: Of one.
            step_seconds: Of a training step, without looks.
        """
        while self.longest < self._most and look_seconds > self._share * self.longest * step_seconds:
            self.longest *= 2
