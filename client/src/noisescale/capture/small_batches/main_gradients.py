"""Gradients summed in 32 bit by the pass that measures them: `watch(..., arithmetic=Arithmetic(accumulate="fp32"))`.

Just before autograd would add to `p.grad` we take it off, so autograd hands over the memory of the micro-batch's own
gradient; right behind, `p.grad` is put back and the new gradient waits until many are added at once. When the backward
is over, `p.grad` holds the sum as ever, for whoever clips, unscales, clears or reads it.

A parameter in 32 bit has its sum in `p.grad` itself. Where `p.grad` is of 16 bit, the sum is a tensor of our own, and
`p.grad` its rounding, made anew at the end of each backward. Whatever else is found in `p.grad` counts as the sum so
far: so the first micro-batch costs nothing, and nobody has to tell us that gradients were cleared or clipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale.capture.sums.pending_gradients import PendingGradients
from noisescale.capture.sums.row_sums import RowsPart, RowSums

WIDE = (torch.float32, torch.float64)
NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class _TakenOff:
    """What was in `p.grad` before a backward.

    Attributes:
        gradient: It.
        version: How often it had been changed.
        is_measured: The gradient that comes is to be measured while it is added.
    """

    gradient: Tensor
    version: int
    is_measured: bool

    def is_untouched(self) -> bool:
        return self.gradient._version == self.version


@dataclass(frozen=True, slots=True)
class _WideSum:
    """A sum in 32 bit, and what `p.grad` showed of it."""

    wide: Tensor
    shown: _TakenOff


class MainGradients:
    """The sums of one step's gradients.

    Args:
        parameters: In the order of their indices.
        rows: Add gradients to sums, and measure both.
        pending: Takes the squared norms of the gradients that were added.
    """

    def __init__(self, parameters: Sequence[Tensor], rows: RowSums, pending: PendingGradients) -> None:
        self._parameters = list(parameters)
        self._rows = rows
        self._pending = pending
        self._is_on = False
        self._taken_off: dict[int, _TakenOff] = {}
        self._waiting: dict[int, tuple[_TakenOff, Tensor]] = {}
        self._waiting_bytes = 0
        self._wide: dict[int, _WideSum] = {}
        self.begin()

    @staticmethod
    def changes(parameters: Sequence[Tensor], rows: RowSums) -> bool:
        """Whether there is anything to do: without a kernel autograd adds 32-bit gradients as well as we do."""
        return rows.adds_in_one_pass or any(p.dtype in NARROW for p in parameters)

    def turn_on(self) -> None:
        """Somebody tells from here on when a backward is over."""
        self._is_on = True

    def turn_off(self) -> None:
        """Leave it all to autograd from here on."""
        self.finish()
        self._is_on = False

    def begin(self) -> None:
        """A backward begins: nothing is known of the sums behind it."""
        self._big_parts: list[RowsPart] | None = []

    def start_step(self) -> None:
        """Forget the sums: whatever is in `p.grad` from here on is where the next begins."""
        self.finish()
        self._wide.clear()
        self._big_parts = None

    # ---- inside a backward

    def take_off(self, index: int, gradient: Tensor, *, is_measured: bool) -> bool:
        """Take `p.grad` off, if this gradient is to be added here: then `put_back` must follow.

        Args:
            index: Of the parameter.
            gradient: As autograd computed it.
            is_measured: It may be measured while it is added; not where several are one small batch.

        Returns:
            Whether it will be measured here.
        """
        parameter = self._parameters[index]
        before = parameter.grad
        if before is None or not self._is_on or not _can_add(parameter, before, gradient):
            self._big_parts = None
            return False
        is_measured = is_measured and not self._pending.has_seen(index)
        if before.dtype in WIDE and not (is_measured and self._rows.adds_in_one_pass):
            self._big_parts = None
            return False
        self._taken_off[index] = _TakenOff(before, before._version, is_measured)
        parameter.grad = None
        return is_measured

    def put_back(self, index: int) -> None:
        """Put `p.grad` back after autograd has laid the micro-batch's own gradient there, and let that wait."""
        before = self._taken_off.pop(index, None)
        if before is None:
            return
        parameter = self._parameters[index]
        gradient = parameter.grad
        parameter.grad = before.gradient
        if gradient is None:
            return
        if index in self._waiting:  # reentrant checkpointing hands a shared parameter's gradient over in parts
            gradient = self._waiting[index][1] + gradient
        else:
            self._waiting_bytes += gradient.numel() * gradient.element_size()
        self._waiting[index] = before, gradient
        if self._waiting_bytes > self._pending.most_bytes:
            self._add()

    def finish(self, *, has_failed: bool = False) -> None:
        """Add what waits, and leave the whole sum in each `p.grad`.

        Args:
            has_failed: The backward broke off, some time ago.
        """
        if not self._taken_off and not self._waiting:
            return
        # Cleared gradients are not to come back; the one at which a backward breaks off has no sign of its own.
        if not has_failed or any(p.grad is not None for p in self._parameters):
            for index, before in self._taken_off.items():
                if self._parameters[index].grad is None:
                    self._parameters[index].grad = before.gradient
        self._taken_off.clear()
        self._add()

    def _add(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        # Where a backward broke off, the gradients may have been cleared before we come to add to them.
        kept = {
            index: entry
            for index, entry in waiting.items()
            if self._parameters[index].grad is entry[0].gradient and entry[0].is_untouched()
        }
        sums = {index: self._sum(index, before) for index, (before, _) in kept.items()}
        try:
            for is_measured in (False, True):  # measuring may fail, so it comes last
                indices = [index for index, (before, _) in kept.items() if before.is_measured is is_measured]
                if indices:
                    gradients = [kept[index][1] for index in indices]
                    self._add_to([sums[index] for index in indices], indices, gradients, is_measured=is_measured)
        finally:
            self._show({index: sums[index] for index, (before, _) in kept.items() if before.gradient.dtype in NARROW})

    def _add_to(
        self, sums: Sequence[Tensor], indices: Sequence[int], gradients: Sequence[Tensor], *, is_measured: bool
    ) -> None:
        if not is_measured:
            torch._foreach_add_(list(sums), list(gradients))
            self._big_parts = None
            return
        is_added = False
        try:
            part, big_part = self._rows.accumulate(indices, sums, gradients)
            is_added = True
        finally:
            if not is_added:  # whatever has gone wrong with measuring, the training gets its gradient
                torch._foreach_add_(list(sums), list(gradients))
                self._big_parts = None
        self._pending.add_reduced(part, gradients)
        if big_part is None:
            self._big_parts = None
        elif self._big_parts is not None:
            self._big_parts.append(big_part)

    def _sum(self, index: int, before: _TakenOff) -> Tensor:
        if before.gradient.dtype in WIDE:
            return before.gradient
        known = self._wide.get(index)
        if known is not None and known.shown.gradient is before.gradient and known.shown.version == before.version:
            return known.wide
        return before.gradient.to(torch.float32, memory_format=torch.contiguous_format)

    def _show(self, sums: dict[int, Tensor]) -> None:
        """Round sums to 16 bit, into `p.grad`."""
        if not sums:
            return
        shown = {index: gradient for index in sums if (gradient := self._parameters[index].grad) is not None}
        torch._foreach_copy_(list(shown.values()), [sums[index] for index in shown])
        for index, gradient in shown.items():
            self._wide[index] = _WideSum(sums[index], _TakenOff(gradient, gradient._version, is_measured=False))

    # ---- behind it

    def forget_big(self) -> None:
        """Gradients may have changed since."""
        self._big_parts = None

    def big_row(self) -> Tensor | None:
        """|sum|² as a row, as the last backward left it; None where it did not add to every gradient here."""
        parts = self._big_parts
        if not parts:
            return None
        indices = [index for part in parts for index in part.indices]
        num_gradients = sum(p.grad is not None for p in self._parameters)
        return self._rows.row(parts) if len(indices) == len(set(indices)) == num_gradients else None


def _can_add(parameter: Tensor, before: Tensor, gradient: Tensor) -> bool:
    """Whether adding here means the same as what autograd would do, and nobody looks in between."""
    hooks = getattr(parameter, "_post_accumulate_grad_hooks", None)
    return (
        not torch.is_grad_enabled()  # a backward that makes a graph adds out of place
        and type(before) is Tensor
        and before.dtype in WIDE + NARROW
        and before.layout == gradient.layout == torch.strided
        and before.dtype == gradient.dtype
        and before.device == gradient.device
        and (before.dtype in NARROW or before.is_contiguous())
        and not before.requires_grad
        and (hooks is None or len(hooks) == 1)
    )
