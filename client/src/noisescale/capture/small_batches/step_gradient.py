"""The gradient of a step, as it is in `p.grad`: what of it is the step's own, and whether it was changed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from noisescale.capture.sources.gradient_source import GradientSource
from noisescale.capture.sums.row_sums import RowSums
from noisescale.kernels.squared_norms import condense, values_that_count

if TYPE_CHECKING:
    from noisescale.capture.small_batches.main_gradients import MainGradients


NUM_KEPT = 1024
"""Elements of a gradient that are kept to compare with."""

LocalGradients = Callable[[], list[Tensor | None]]


# What backward passes inside `ignore()` have added to `p.grad`: to be taken off it again where it is read.


class IgnoredGradients:
    """Sums of gradients by the index of their parameter.

    Attributes:
        sums: What is part of `p.grad` now.
    """

    def __init__(self) -> None:
        self.sums: dict[int, Tensor] = {}
        self._now: dict[int, Tensor] = {}

    def see(self, index: int, gradient: Tensor) -> None:
        """Take a gradient of the backward that runs; autograd adds it to `p.grad` behind."""
        self._now[index] = gradient.detach().clone()

    def keep(self) -> None:
        """The backward has ended, and added what was seen."""
        for index, gradient in self._now.items():
            self.sums[index] = self.sums[index] + gradient if index in self.sums else gradient
        self._now = {}

    def drop(self) -> None:
        """The backward has ended, and added nothing."""
        self._now = {}

    def forget(self, index: int) -> None:
        """The gradient of this parameter was cleared."""
        self.sums.pop(index, None)

    def taken_off(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients without what was ignored."""
        found = list(gradients)
        for index, ignored in self.sums.items():
            gradient = found[index]
            found[index] = None if gradient is None else gradient - ignored
        return found


# Tells whether the gradients are still what the last backward left behind.


class Witness:
    """One parameter that stands for all: who clears, clips, unscales or averages gradients does so with every one.

    It compares the counter that torch raises at each change in place, so it never waits for the device. A loss scaler's
    `unscale_()` does not raise it: for that the values of a small gradient are kept, and compared on the device.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._smallest_first = sorted(range(len(parameters)), key=lambda index: parameters[index].numel())
        self.forget()

    def forget(self) -> None:
        """Forget the values, so that none counts as changed."""
        self._index: int | None = None
        self._version = 0
        self._kept: tuple[int, Tensor] | None = None
        self._seen: tuple[Tensor, Tensor] | None = None

    def remember(self) -> None:
        """Take the gradients for what they are now, after a backward."""
        if self._index is None:
            self._index = next((i for i, p in enumerate(self._parameters) if p.grad is not None), None)
        gradient = self._now()
        if gradient is not None:
            self._version = gradient._version
        before, self._kept = self._kept, None
        for index in self._smallest_first:
            gradient = self._parameters[index].grad
            values = self._view_of(gradient)
            if values is None:
                continue
            if before is not None and _are_alike(before[1], values) and not _is_capturing(values):
                before[1].copy_(values)  # once a backward: a copy into what is there takes a third of a new one
                self._kept = index, before[1]
            else:
                self._kept = index, values.clone()
            break

    def _view_of(self, gradient: Tensor | None) -> Tensor | None:
        """Its first values; of the one that was seen last, and lies where it did, the same view."""
        seen = self._seen
        if seen is not None and gradient is seen[0] and gradient.data_ptr() == seen[1].data_ptr():
            return seen[1]
        values = _first_values(gradient)
        is_view = gradient is not None and values is not None and values.data_ptr() == gradient.data_ptr()
        self._seen = (gradient, values) if is_view else None  # type: ignore[assignment]
        return values

    def has_other_values(self) -> Tensor | None:
        """1 where the values differ from those remembered, else 0: one fp64 number on the device; None: not known."""
        if self._kept is None:
            return None
        index, before = self._kept
        values = _first_values(self._parameters[index].grad)
        if values is None or values.shape != before.shape:
            return None
        # NaN differs from itself, and is reported as what it is
        return ((values != before) & ~before.isnan()).any().double().reshape(1)

    def _now(self) -> Tensor | None:
        return None if self._index is None else self._parameters[self._index].grad

    def forget_values(self) -> None:
        """Somebody has changed the values in a way that is known."""
        self._kept = None

    @property
    def is_cleared(self) -> bool:
        """Whether the gradients were set to None."""
        return self._index is not None and self._parameters[self._index].grad is None

    @property
    def is_changed(self) -> bool:
        """Whether the gradients were changed in place, also to zero."""
        gradient = self._now()
        return gradient is not None and gradient._version != self._version


def _first_values(gradient: Tensor | None) -> Tensor | None:
    """The first values of a plain gradient; None of one that is sparse, spread over ranks or not there."""
    if gradient is None or type(gradient) is not Tensor or gradient.layout != torch.strided or not gradient.numel():
        return None
    return gradient.detach().reshape(-1)[:NUM_KEPT]


def _is_capturing(values: Tensor) -> bool:
    """Whether a CUDA graph records: it would write into this memory whenever it is replayed."""
    return values.is_cuda and torch.cuda.is_current_stream_capturing()


def _are_alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device


class StepGradient:
    """The mean gradient of a step, once all its small batches are there.

    Args:
        parameters: In the order of their indices.
        rows: Sum squared norms up.
        local_gradients: Gives the part of each `p.grad` that this process holds; None: all of it.
        source: Takes each backward apart, and may leave parameters out; None: each is one small batch.
        main: Adds gradients up in place of autograd; None: autograd does.

    Attributes:
        witness: Tells whether it was changed since the last backward.
        ignored: What `ignore()` kept out of the small batches.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rows: RowSums,
        *,
        local_gradients: LocalGradients | None,
        source: GradientSource | None,
        main: "MainGradients | None",
    ) -> None:
        self._rows = rows
        self._local_gradients = local_gradients or (lambda: [p.grad for p in parameters])
        self._source = source
        self._main = main
        self.witness = Witness(parameters)
        self.ignored = IgnoredGradients()

    def start_step(self) -> None:
        """Forget what was seen: the next backward belongs to a new step."""
        self.witness.forget()
        self.ignored = IgnoredGradients()

    def look_closer(self, undone_scale: Tensor | None, *, adds_up: bool) -> None:
        """Forget what is known of it where it may not be true any more.

        Args:
            undone_scale: Of a loss scaler, where it has been divided by it since.
            adds_up: It is still the sum of the small batches.
        """
        if undone_scale is not None:
            self.witness.forget_values()
        if self._main is not None and (undone_scale is not None or not adds_up):
            self._main.forget_big()

    @property
    def has_ignored(self) -> bool:
        """Whether `p.grad` holds something that `ignore()` kept out of the small batches."""
        return bool(self.ignored.sums)

    def own(self) -> list[Tensor | None]:
        """`p.grad` of each parameter, without what `ignore()` kept out."""
        gradients = self.ignored.taken_off(self._local_gradients())
        if self._source is not None:
            for index in self._source.dropped:
                gradients[index] = None
        return gradients

    def row(self) -> Tensor | None:
        """Its squared norms as a row; None where there is no gradient."""
        known = None if self._main is None or self.has_ignored else self._main.big_row()
        if known is not None:
            return known
        gradients = self.own()
        indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
        if not indices:
            return None
        condensed = [gradient for gradient in gradients if gradient is not None]
        if not self._rows.reads_as_they_lie:
            condensed = [condense(values_that_count(gradient)) for gradient in condensed]
        return self._rows.row([self._rows.part(indices, condensed)])


# A backward that runs, and whether it changes the gradients.


class RunningBackward(NamedTuple):
    """The parameter that a backward has reached first, and its gradient before.

    Attributes:
        parameter: It.
        gradient: What was in `p.grad`.
        version: How often that had been changed.
    """

    parameter: Tensor
    gradient: Tensor | None
    version: int

    @classmethod
    def at(cls, parameter: Tensor) -> "RunningBackward":
        """The backward that has reached this parameter, and has not added to its `p.grad` yet."""
        gradient = parameter.grad
        return cls(parameter, gradient, 0 if gradient is None else gradient._version)

    def has_moved(self) -> bool:
        """Whether it has changed `p.grad` by now; `torch.autograd.grad` leaves it as it is."""
        gradient = self.parameter.grad
        return gradient is not self.gradient or (gradient is not None and gradient._version != self.version)
