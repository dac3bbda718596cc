"""From rows to the records of streams, in an order that a grown source keeps: its old records come first, unchanged.

A step that goes back begins another stream, as a job that was started again from a checkpoint does.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noisescale_core.estimators.flags import Flags
from noisescale_importers.reading import Reading, Values
from noisescale_importers.source import Damage, Row

MAX_UPDATES = 2**31 - 1
MAX_VALUES = 500
"""Metrics of one record; a row with more has several."""


REACHED = "target_reached"
"""Metric of a run of which only the steps to a target are known: 0 before that step, 1 at it."""


class Measured(NamedTuple):
    """A step's own row."""

    step: int
    num_updates: int
    time: float | None
    elapsed: float | None
    loss: float | None
    lr: float | None
    batch: float | None
    examples: int | None
    flags: int
    place: str


class Logged(NamedTuple):
    """Metrics of a step."""

    step: int
    time: float | None
    elapsed: float | None
    values: tuple[tuple[str, float], ...]
    place: str


class StepsBack(NamedTuple):
    """The job went back to an earlier step: what follows is another stream."""

    place: str


Item = Measured | Logged | Damage | StepsBack


class Assembly:
    """Makes items of rows.

    Args:
        reading: What the rows mean.
        has_single_values: Whether the values of a step come in rows of their own.
        is_over: Whether the source has ended: then a last step that lacks values is whole all the same.

    Attributes:
        num_repeated: Rows left out since they repeat the step before them.
        is_waiting: A last step is held back, as the source may still add to it.
    """

    def __init__(self, reading: Reading, *, has_single_values: bool, is_over: bool) -> None:
        self._reading = reading
        self._single = has_single_values
        self._says_steps = reading.is_one_row and "steps-to-target" in reading.roles
        self._is_over = is_over
        self._has_loss = "loss" in reading.roles
        self._last_step: int | None = None
        self._open: dict[str, float] = {}
        self._open_step: int | None = None
        self._open_time: float | None = None
        self._open_place = ""
        self.num_repeated = 0
        self.is_waiting = False

    def items(self, rows: Iterable[Row | Damage]) -> Iterator[Item]:
        """The items of these rows, in their order."""
        for row in rows:
            if isinstance(row, Damage):
                yield row
            elif self._single:
                yield from self._of_single(row)
            else:
                yield from self._of_whole(row)
        if self._open:
            if self._is_over:
                yield from self._close()
            else:
                self.is_waiting = True

    def _of_whole(self, row: Row) -> Iterator[Item]:
        values = self._reading.read(row)
        while self._reading.faults:
            yield Damage(row.place, self._reading.faults.pop(0))
        if isinstance(values, Damage):
            yield values
            return
        yield from self._of_values(values, row.place)

    def _of_single(self, row: Row) -> Iterator[Item]:
        """Values of roles wait until their step is whole: all of them were seen, or the next step begins."""
        measured = {name: value for name, value in row.values.items() if name in self._reading.measured}
        others = {name: value for name, value in row.values.items() if name not in self._reading.measured}
        if measured:
            if self._open and (row.step != self._open_step or measured.keys() & self._open.keys()):
                yield from self._close()
            self._open |= measured
            self._open_step, self._open_time, self._open_place = row.step, row.time, row.place
            if len(self._open) == len(self._reading.measured):
                yield from self._close()
        if others:
            yield from self._of_whole(row._replace(values=others))

    def _close(self) -> Iterator[Item]:
        row = Row(self._open, self._open_step, self._open_time, self._open_place)
        self._open = {}
        yield from self._of_whole(row)

    def _of_values(self, values: Values, place: str) -> Iterator[Item]:
        if self._is_measured(values):
            if values.step == self._last_step:
                self.num_repeated += 1
            else:
                if self._last_step is not None and values.step < self._last_step:
                    self._last_step = None
                    yield StepsBack(place)
                yield self._measured(values, place)
                self._last_step = values.step
        if self._says_steps:
            yield from _reached(values, place)
        numbers = tuple(values.metrics.items())
        for first in range(0, len(numbers), MAX_VALUES):
            yield Logged(values.step, values.time, values.elapsed, numbers[first : first + MAX_VALUES], place)

    def _is_measured(self, values: Values) -> bool:
        """A run that logs a loss has a row where it did; another one where anything of its steps is known."""
        if self._has_loss:
            return values.loss is not None
        if self._single and values.metrics:
            return False
        return any(one is not None for one in (values.lr, values.batch, values.examples))

    def _measured(self, values: Values, place: str) -> Measured:
        since = 1 if self._last_step is None else values.step - self._last_step
        is_broken = values.loss is not None and not math.isfinite(values.loss)
        return Measured(
            values.step,
            min(since, MAX_UPDATES),
            values.time,
            values.elapsed,
            None if is_broken else values.loss,
            values.lr,
            values.batch,
            values.examples,
            int(Flags.NONFINITE_LOSS) if is_broken else 0,
            place,
        )


def _reached(values: Values, place: str) -> Iterator[Logged]:
    """The target as a metric of its own: not reached one step earlier, and reached."""
    for step, is_reached in ((values.step - 1, 0.0), (values.step, 1.0)):
        if step >= 0:
            yield Logged(step, values.time, values.elapsed, ((REACHED, is_reached),), place)
