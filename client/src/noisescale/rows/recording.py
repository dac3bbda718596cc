"""Adds updates up into rows and layer records: sums only, the ratio is taken when somebody looks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from noisescale.rows.row_parts import LayerNorms, LayerSums, PathPart
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
    step, _, wall_time, examples, small, num_small, big, trace, signal, _, _, _, loss, _, lr, _ = row[: -len(NO_PATH)]
    # as by their names, in half of the time
    logged = tuple.__new__(LoggedStep, (step, wall_time, lr, examples, 0, True))
    terms = tuple.__new__(Terms, (trace, signal))
    return tuple.__new__(Update, (logged, num_small, small, big, terms, None, loss, 0, None))


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
        has_groups: There are layers.
        hands_out_each: Each update is a row, unless a step before it was not measured.
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
        self._last: Update | Measurement | None = None
        self._last_unmeasured: tuple[int, float | None] | None = None
        self._row = RowSoFar()
        self._start_groups(start_time)
        self.has_groups = bool(self.group_names)
        self.hands_out_each = log_every == 1

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
        if self._groups is not None:
            self._add_layers(self._groups, update.layers, update.logged.step, update.logged.wall_time)

    def add_layers_of(self, row: Measurement, layers: LayerNorms) -> None:
        """Add the layers of a plain update whose row its caller has handed out; there must be as many groups."""
        assert self._groups is not None
        self._last = row
        self._add_layers(self._groups, layers, row.step, row.wall_time)

    def _add_layers(self, groups: LayerSums, layers: LayerNorms | None, step: int, wall_time: float) -> None:
        if layers is not None:  # an update without terms has no layers
            groups.add(layers)
        if groups.num_updates >= MIN_GROUP_UPDATES and wall_time - self._groups_since >= self._group_seconds:
            self._append_groups(groups, step, wall_time)

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
        last = update_of(self._last) if isinstance(self._last, Measurement) else self._last
        newest = self._last_unmeasured
        if newest is not None and newest[0] > last.logged.step:
            last = last._replace(logged=last.logged._replace(step=newest[0], lr=newest[1], wall_time=wall_time))
        self._last = last
        if self._row.num_covered:
            self._append(self._row.row(last))
            self._row = RowSoFar()
        if self._groups is not None and self._groups.num_updates:
            self._append_groups(self._groups, last.logged.step, last.logged.wall_time)

    def _append_groups(self, groups: LayerSums, step: int, wall_time: float) -> None:
        names = self.group_names
        self._append(GroupRecord(step, wall_time, names, [groups.num_updates] * len(names), *groups.moments()))
        self._start_groups(wall_time)
