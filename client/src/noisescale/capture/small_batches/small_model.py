"""Gathers the small batches of a small model: gradients are only kept, and looked at when the step is logged."""

# K small batches, C columns (all parameters, then each group)

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.small_batches.accumulation import UNPAIRED, Accumulation
from noisescale.capture.small_batches.gradient_lists import GradientLists, Gradients, Pass, total
from noisescale.capture.small_batches.gradient_rows import GradientRows
from noisescale.capture.small_batches.held_rows import HeldNorms
from noisescale.capture.small_batches.row_sums import membership
from noisescale.capture.small_batches.small_batches import SmallBatchSize, total_size

NUM_FIRST_LOOKS = 4
"""Steps from the first in which the gradient is compared with the sum of the small batches."""

LOOK_EVERY = 64
"""Steps from one such comparison to the next after those."""


class SmallModelAccumulation(Accumulation):
    """The small batches of a model for which each call into Python would show.

    Args:
        parameters: Those that `GradientRows` suits, in the order of their indices.
        group_of_parameter: Index of each parameter's group; -1 for none.
        num_groups: G.

    Attributes:
        lists: Take the gradients.
        is_at_a_loss: Something happens to the gradients that can only be told apart by looking at each at once, as
            `Accumulation` does.
    """

    def __init__(self, parameters: Sequence[Tensor], group_of_parameter: Sequence[int], num_groups: int) -> None:
        self._rows = GradientRows(parameters, membership(group_of_parameter, num_groups, parameters[0].device))
        self._everything = set(range(len(parameters)))
        self.lists = GradientLists(parameters, self._rows.capacity)
        self.is_at_a_loss = self._has_been_unpaired = False
        self._num_looks = 0
        super().__init__(parameters, group_of_parameter, num_groups)

    def start_step(self) -> None:
        """Forget everything but the gradients that nobody has taken yet."""
        super().start_step()
        self._rows.clear()
        self._folded: list[Tensor] = []
        self._marked: Gradients | None = None
        self._is_paired = self._is_mark_paired = True
        self._needs_proof = False

    def keeps_pace(self) -> bool:
        """Whether a forward that begins now finds nothing to settle."""
        return self.lists.keep_pace(len(self.forwards))

    def settle(self, *, is_last: bool) -> int:
        """Count the backward passes that are over; how many they are.

        Args:
            is_last: The step is about to be logged.
        """
        taken = self.lists.take(len(self.forwards))
        if self.is_marked:
            self._is_mark_paired &= taken.is_paired
        elif not (taken.is_paired or self.is_ignoring):
            self._lose_pairs()
        if taken.is_regular and is_last and not (self.is_marked or self.is_ignoring):
            self._add_whole(taken.whole)
            passes: Sequence[Pass] = taken.others
        else:
            passes = taken.all()
            if not taken.is_regular or (passes and not is_last):
                passes = self._not_thrown_away(passes, is_regular=taken.is_regular, is_last=is_last)
        for one in passes:
            self._add(one)
        return len(taken.whole) + len(taken.others)

    def _lose_pairs(self) -> None:
        """Give up on sizes that are read from the forwards: what reached no parameter is no example."""
        sizes = set(self.forwards.sizes())
        self._is_paired = False
        self._has_been_unpaired = self.is_at_a_loss = True
        self.reason = UNPAIRED
        self.adds_up &= len(sizes) == 1  # else a `batch_size` that was given is not spread evenly

    def _not_thrown_away(self, passes: Sequence[Pass], *, is_regular: bool, is_last: bool) -> Sequence[Pass]:
        """The passes whose gradients are still there, as far as can be told before the step is logged."""
        if passes and not is_last and self._are_cleared(passes[-1].gradients):
            self.start_step()
            self.forwards.clear()
            return []
        if is_regular:
            return passes
        if self.has_been_logged or (not is_last and all(p.grad is None for p in self._parameters)):
            self.start_step()  # no optimizer step: an AMP scaler or the loop itself skipped it
        if passes and self._is_only(passes[-1].gradients):
            self.start_step()
            self.forwards.drop(len(self.forwards) - passes[-1].num_forwards)
            return passes[-1:]
        self._needs_proof |= bool(passes or self.sizes) or any(p.grad is not None for p in self._parameters)
        return passes

    def _are_cleared(self, gradients: Gradients) -> bool:
        """Whether what a backward pass has left behind is gone, because it failed or was thrown away."""
        first = next((index for index, gradient in enumerate(gradients) if gradient is not None), None)
        return first is not None and self._parameters[first].grad is None

    def _is_only(self, gradients: Gradients) -> bool:
        """Whether the gradients were cleared before this backward pass, and are its own alone."""
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            if gradient is not None:
                return parameter.grad is not None and torch.equal(parameter.grad.to_dense(), gradient.to_dense())
        return False

    def _add_whole(self, passes: Sequence[Gradients]) -> None:
        """Count passes as small batches; quicker than one by one."""
        if len(passes) + self._rows.num_rows > self._rows.capacity:
            for gradients in passes:
                self._add(Pass(gradients, 1))
        elif passes:
            self._rows.add_all(passes)
            self.is_partial |= bool(self._last_indices) and self._last_indices != self._everything
            self._last_indices = self._everything
            size = SmallBatchSize(None)
            for num_examples in self.forwards.drop(len(passes)):
                if num_examples != size.num_examples:
                    size = SmallBatchSize(num_examples)
                self.sizes.append(size)

    def _add(self, one: Pass) -> None:
        if self.is_ignoring:
            for index, gradient in enumerate(one.gradients):
                if gradient is not None:
                    self.see_gradient(index, gradient)
            self._ignored.keep()
        elif self.is_marked:
            before = self._marked or [None] * len(one.gradients)
            self._marked = [total(pair) for pair in zip(before, one.gradients, strict=True)]
        else:
            size = total_size(self.forwards.drop(one.num_forwards))
            self._add_small_batch(one.gradients, size if self._is_paired else None, is_marked=False)

    def end_small_batch(self, num_examples: float | Tensor | None) -> None:
        """Count a marked small batch; see `Accumulation`."""
        if self._marked is None:
            return
        gradients, self._marked = self._marked, None
        size = num_examples
        if size is None and not self._is_mark_paired:
            self._lose_pairs()
        elif size is None:
            size = total_size(self.forwards.drop(len(self.forwards)))
        self._is_mark_paired = True
        self.forwards.clear()
        self._add_small_batch(gradients, size, is_marked=num_examples is not None)

    def _add_small_batch(self, gradients: Gradients, size: float | Tensor | None, *, is_marked: bool) -> None:
        self._add_row(gradients)
        self._count({index for index, gradient in enumerate(gradients) if gradient is not None}, size, is_marked)

    def _add_row(self, gradients: Gradients) -> None:
        if self._rows.num_rows == self._rows.capacity:
            self._folded.append(self._rows.take())
        self._rows.add(gradients)

    def remember_gradient(self) -> None:
        """The lists do."""

    def look_at_gradient(self, undone_scale: Tensor | None = None) -> None:
        """Where something else may have changed the gradients: compare them with the sum of the small batches.

        Args:
            undone_scale: Of a loss scaler, where the gradients have been divided by it since.
        """
        self._num_looks += self._rows.num_rows > 0
        # a loss scaler divides the gradients without a trace: the loop that does it does it at each step
        is_due = self._num_looks <= NUM_FIRST_LOOKS or self._num_looks % LOOK_EVERY == 0
        if (self._needs_proof or (is_due and self._rows.num_rows and not self._folded)) and self.sizes:
            is_changed = self._folded != [] or not self._is_sum_of_rows(undone_scale)
            self.is_at_a_loss = is_changed or self._has_been_unpaired
            self.adds_up &= not is_changed

    def _is_sum_of_rows(self, undone_scale: Tensor | None) -> bool:
        for index, gradient in reversed(list(enumerate(self._own_gradients()))):  # the last one is most often a bias
            summed = self._rows.total(index)
            if summed is not None and gradient is not None:
                whole = gradient.to_dense() if undone_scale is None else gradient.to_dense() * undone_scale
                summed = summed.to_dense().detach()
                rounding = 1e-4 * float(summed.nan_to_num(0, 0, 0).abs().max())
                return torch.allclose(whole.to(summed), summed, rtol=1e-4, atol=rounding, equal_nan=True)
        return False

    def norms(self) -> Tensor | HeldNorms:
        """As in `Accumulation`, but computed later unless the step had many small batches."""
        self._add_row(self._own_gradients())
        return torch.cat([*self._folded, self._rows.take()]) if self._folded else self._rows.hold()
