"""Adds updates up into rows and layer records: sums only, the ratio is taken when somebody looks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from noisescale.rows.row_parts import LayerSums, PathPart
from noisescale.rows.updates import LoggedStep, Update
from noisescale.transport.wire import GroupRecord, Measurement
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.noise_scale import Terms

Moments = tuple[float | None, float | None, float | None, float | None, float | None]
NO_MOMENTS: Moments = (None, None, None, None, None)
NO_PATH = tuple(Measurement._field_defaults.values())

MIN_GROUP_UPDATES = 10
"""Least updates between two layer records."""


class TermSums:
    """First and second moments of the two terms over some updates."""

    __slots__ = ("cross", "grad_sq_norm", "grad_sq_norm_sq", "num_updates", "trace_cov", "trace_cov_sq")

    def __init__(self) -> None:
        self.num_updates = 0
        self.trace_cov = self.grad_sq_norm = self.trace_cov_sq = self.grad_sq_norm_sq = self.cross = 0.0

    def add(self, terms: Terms) -> None:
        """Add one update."""
        trace_cov, grad_sq_norm = terms.trace_cov, terms.grad_sq_norm
        self.num_updates += 1
        self.trace_cov += trace_cov
        self.grad_sq_norm += grad_sq_norm
        self.trace_cov_sq += trace_cov * trace_cov
        self.grad_sq_norm_sq += grad_sq_norm * grad_sq_norm
        self.cross += trace_cov * grad_sq_norm

    def moments(self) -> tuple[float, float, float, float, float]:
        """The five sums in the order of the wire format."""
        return self.trace_cov, self.grad_sq_norm, self.trace_cov_sq, self.grad_sq_norm_sq, self.cross


class RowSoFar:
    """The updates since the last row."""

    def __init__(self) -> None:
        self.num_covered = 0
        self._terms = TermSums()
        self._sum_loss = 0.0
        self._num_loss = 0
        self._flags = 0
        self._path: PathPart | None = None

    def add(self, update: Update) -> None:
        """Add one update."""
        self.num_covered += 1
        self._flags |= update.flags
        if update.terms is not None:
            self._terms.add(update.terms)
        if update.loss is not None:
            self._sum_loss += update.loss
            self._num_loss += 1
        if update.path is not None:
            self._path = update.path if self._path is None else self._path.then(update.path)

    def add_unmeasured(self, loss: float | None) -> None:
        """Add a step in which nothing was measured."""
        self.num_covered += 1
        if loss is not None and math.isfinite(loss):
            self._sum_loss += loss
            self._num_loss += 1
        elif loss is not None:
            self._flags |= Flags.NONFINITE_LOSS

    def row(self, last: Update) -> Measurement:
        """The row that ends with this update; sizes and learning rate are the last update's."""
        terms, logged = self._terms, last.logged
        moments: Moments = terms.moments() if terms.num_updates else NO_MOMENTS
        return Measurement(  # by place: names cost half as much again
            logged.step,
            terms.num_updates or self.num_covered,
            logged.wall_time,
            logged.examples,
            last.micro_batch_size,
            last.num_micro_batches,
            last.global_batch,
            *moments,
            self._sum_loss if self._num_loss else None,
            self._num_loss,
            logged.lr,
            int(self._flags),
            *(self._path or ()),
        )


def row_of(update: Update) -> Measurement:
    """The row of one update, which most rows are: as by `RowSoFar`, without sums on the way."""
    (step, wall_time, lr, examples, _, _), num_small, small, big, terms, _, loss, flags, path = update
    news = NO_PATH if path is None else path
    return row_from(step, wall_time, lr, examples, (small, big, num_small), terms, loss, int(flags), news)


def row_from(
    step: int,
    wall_time: float,
    lr: float | None,
    examples: int | None,
    sizes: tuple[float | None, float | None, int],
    terms: tuple[float, float] | None,
    loss: float | None,
    flags: int = 0,
    news: tuple[Any, ...] = NO_PATH,
) -> Measurement:
    """The row of one update.

    Args:
        step: As its `LoggedStep` has it.
        wall_time: The same.
        lr: The same.
        examples: The same.
        sizes: Examples of a small batch and of the step, and small batches in the step.
        terms: tr Σ and |G|²; None where a flag says why.
        loss: Finite, or None.
        flags: Bits of `Flags`.
        news: Of the path, in the order of the wire format.
    """
    small, big, num_small = sizes
    num_loss = 0 if loss is None else 1
    # as `Measurement(…)`, without naming each column on the way; numbers one by one, as a star makes a list first
    if terms is None:
        x = y = xx = yy = xy = None
    else:
        x, y = terms
        xx, yy, xy = x * x, y * y, x * y
    known = step, 1, wall_time, examples, small, num_small, big, x, y, xx, yy, xy, loss, num_loss, lr, flags
    return tuple.__new__(Measurement, known + news)


def update_of(row: Measurement) -> Update:
    """The update of a plain row."""
    logged = LoggedStep(row.step, row.wall_time, row.lr, row.examples)
    assert row.sum_trace_cov is not None
    assert row.sum_grad_sq_norm is not None
    terms = Terms(row.sum_trace_cov, row.sum_grad_sq_norm)
    return Update(logged, row.num_micro_batches, row.micro_batch_size, row.global_batch, terms, None, row.sum_loss, 0)


class Recording:
    """Rows every `log_every` updates, layer records every `group_seconds` and 10 updates.

    Args:
        append: Takes the records.
        log_every: Updates per row.
        group_seconds: Least time between two layer records.
        group_names: Layers of the updates, in their order.
        start_time: Unix seconds from which the first `group_seconds` count.

    Attributes:
        group_names: Layers of the updates.
        hands_out_each: Each update is a row, and that is all, unless a step before it was not measured.
    """

    def __init__(
        self,
        append: Callable[[Measurement | GroupRecord], None],
        *,
        log_every: int,
        group_seconds: float,
        group_names: Sequence[str],
        start_time: float,
    ) -> None:
        self._append = append
        self._log_every = log_every
        self._group_seconds = group_seconds
        self.group_names = list(group_names)
        self._last: Update | None = None
        self._last_unmeasured: tuple[int, float | None] | None = None
        self._row = RowSoFar()
        self._start_groups(start_time)
        self.hands_out_each = log_every == 1 and not self.group_names

    def _start_groups(self, wall_time: float) -> None:
        self._groups = LayerSums(len(self.group_names)) if self.group_names else None
        self._groups_since = wall_time

    def add(self, update: Update) -> None:
        """Add one update and hand out what is due."""
        self._last = update
        if self._log_every == 1 and not self._row.num_covered:
            self._append(row_of(update))
        else:
            self._row.add(update)
            if self._row.num_covered >= self._log_every:
                self._append(self._row.row(update))
                self._row = RowSoFar()
        groups = self._groups
        if groups is None:
            return
        if update.layers is not None:  # an update without terms has no layers
            groups.add(update.layers)
        if groups.num_updates >= MIN_GROUP_UPDATES:
            wall_time = update.logged.wall_time
            if wall_time - self._groups_since >= self._group_seconds:
                self._append_groups(groups, update)

    def add_unmeasured(self, step: int, lr: float | None, loss: float | None) -> None:
        """Add a step in which nothing was measured: it goes into the row of the next one that was."""
        self._last_unmeasured = step, lr
        self._row.add_unmeasured(loss)

    def flush(self, wall_time: float) -> None:
        """Hand out what has been added since the last records.

        Args:
            wall_time: Unix seconds, now.
        """
        if self._last is None:
            return
        newest = self._last_unmeasured
        if newest is not None and newest[0] > self._last.logged.step:
            logged = self._last.logged._replace(step=newest[0], lr=newest[1], wall_time=wall_time)
            self._last = self._last._replace(logged=logged)
        if self._row.num_covered:
            self._append(self._row.row(self._last))
            self._row = RowSoFar()
        if self._groups is not None and self._groups.num_updates:
            self._append_groups(self._groups, self._last)

    def _append_groups(self, groups: LayerSums, last: Update) -> None:
        names = self.group_names
        self._append(
            GroupRecord(
                last.logged.step, last.logged.wall_time, names, [groups.num_updates] * len(names), *groups.moments()
            )
        )
        self._start_groups(last.logged.wall_time)
