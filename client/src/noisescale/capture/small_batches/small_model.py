"""Gathers the small batches of a small model: gradients are only kept, and looked at when the step is logged."""

# K small batches, C columns (all parameters, then each group)

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from noisescale.capture.forwards import of_unpaired
from noisescale.capture.kinds.kind import Kind
from noisescale.capture.small_batches.accumulation import Accumulation
from noisescale.capture.small_batches.gradient_lists import GradientLists, Gradients, Pass, total
from noisescale.capture.small_batches.gradient_rows import GradientRows
from noisescale.capture.step import Gathered
from noisescale.capture.sums.device_values import HeldNorms
from noisescale.capture.sums.row_sums import membership
from noisescale.capture.sums.small_batches import SmallBatchSize, total_size

NUM_FIRST_LOOKS = 4
"""Steps from the first in which the gradient is compared with the sum of the small batches."""

LOOK_EVERY = 64
"""Steps from one such comparison to the next after those."""


@dataclass(frozen=True, slots=True)
class _Marked:
    """What backward passes of the marked small batch have added so far.

    Attributes:
        gradients: Their sum; None before the first.
        is_paired: It is clear which forwards they belong to.
    """

    gradients: Gradients | None = None
    is_paired: bool = True


class SmallModelAccumulation(Accumulation):
    """The small batches of a model for which each call into Python would show.

    Args:
        parameters: Those that `GradientRows` suits, in the order of their indices.
        group_of_parameter: Index of each parameter's group; -1 for none.
        num_groups: G.
        kinds: Further kinds of noise scale, which see the small batches when the step is logged.

    Attributes:
        lists: Take the gradients.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        group_of_parameter: Sequence[int],
        num_groups: int,
        kinds: Sequence[Kind] = (),
    ) -> None:
        self._rows = GradientRows(parameters, membership(group_of_parameter, num_groups, parameters[0].device))
        self._everything = frozenset(range(len(parameters)))
        self.lists = GradientLists(parameters, self._rows.capacity)
        self._is_changed = self._has_been_unpaired = False
        self._num_looks = 0
        super().__init__(parameters, group_of_parameter, num_groups, kinds)

    def _forget(self) -> Gathered:
        """Forget everything but the gradients that nobody has taken yet."""
        self._rows.clear()
        self._folded: list[Tensor] = []
        self._marked = _Marked()
        self._is_paired = True
        self._needs_proof = False
        return super()._forget()

    @property
    def is_at_a_loss(self) -> bool:
        """Whether something happens that can only be told apart by looking at each gradient at once.

        That is what `Accumulation` does.
        """
        return self._is_changed or self._has_been_unpaired

    def keeps_pace(self) -> bool:
        """Whether a forward that begins now finds nothing to settle."""
        return self.lists.keep_pace(len(self.forwards))

    def settle(self, *, is_last: bool) -> int:
        """Count the backward passes that are over; how many they are.

        Args:
            is_last: The step is about to be logged.
        """
        taken = self.lists.take(len(self.forwards))
        section = self.step.section
        if section.is_marked:
            self._marked = self._marked if taken.is_paired else replace(self._marked, is_paired=False)
        elif not (taken.is_paired or section.is_ignored):
            self._lose_pairs()
        if taken.is_regular and is_last and section.is_plain:
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
        examples = of_unpaired(self.forwards.sizes())
        self._is_paired = False
        self._has_been_unpaired = True
        self.step.gather(self.gathered.doubted(examples.reason, adds_up=examples.adds_up))

    def _not_thrown_away(self, passes: Sequence[Pass], *, is_regular: bool, is_last: bool) -> Sequence[Pass]:
        """The passes whose gradients are still there, as far as can be told before the step is logged."""
        if passes and not is_last and self._are_cleared(passes[-1].gradients):
            self.start_step()
            self.forwards.clear()
            return []
        if is_regular:
            return passes
        if self.step.is_logged or (not is_last and all(p.grad is None for p in self._parameters)):
            self.start_step()  # no optimizer step: an AMP scaler or the loop itself skipped it
        if passes and self._is_only(passes[-1].gradients):
            self.start_step()
            self.forwards.drop(len(self.forwards) - passes[-1].num_forwards)
            return passes[-1:]
        self._needs_proof |= bool(passes or self.gathered.sizes) or any(p.grad is not None for p in self._parameters)
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
            size, sizes = SmallBatchSize(None), []
            for num_examples in self.forwards.drop(len(passes)):
                if num_examples != size.num_examples:
                    size = SmallBatchSize(num_examples)
                sizes.append(size)
            self.step.gather(self.gathered.with_small_batches(self._everything, sizes))

    def _add(self, one: Pass) -> None:
        section = self.step.section
        if section.is_ignored:
            for index, gradient in enumerate(one.gradients):
                if gradient is not None:
                    self.see_gradient(index, gradient)
            self.gradient.ignored.keep()
        elif section.is_marked:
            before = self._marked.gradients or [None] * len(one.gradients)
            added = [total(pair) for pair in zip(before, one.gradients, strict=True)]
            self._marked = replace(self._marked, gradients=added)
        else:
            size = total_size(self.forwards.drop(one.num_forwards))
            self._add_small_batch(one.gradients, size if self._is_paired else None, is_marked=False)

    def end_small_batch(self, num_examples: float | Tensor | None) -> None:
        """Count a marked small batch; see `Accumulation`."""
        marked = self._marked
        if marked.gradients is None:
            return
        self._marked = _Marked()
        size = num_examples
        if size is None and not marked.is_paired:
            self._lose_pairs()
        elif size is None:
            size = total_size(self.forwards.drop(len(self.forwards)))
        self.forwards.clear()
        self._add_small_batch(marked.gradients, size, is_marked=num_examples is not None)

    def _add_small_batch(self, gradients: Gradients, size: float | Tensor | None, *, is_marked: bool) -> None:
        self._add_row(gradients)
        indices = frozenset(index for index, gradient in enumerate(gradients) if gradient is not None)
        self.step.gather(self.gathered.with_small_batches(indices, [SmallBatchSize(size, is_marked)]))

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
        if (self._needs_proof or (is_due and self._rows.num_rows and not self._folded)) and self.gathered.sizes:
            self._is_changed = self._folded != [] or not self._is_sum_of_rows(undone_scale)
            if self._is_changed:
                self._doubt()

    def _is_sum_of_rows(self, undone_scale: Tensor | None) -> bool:
        for index, gradient in reversed(list(enumerate(self.gradient.own()))):  # the last one is most often a bias
            summed = self._rows.total(index)
            if summed is not None and gradient is not None:
                whole = gradient.to_dense() if undone_scale is None else gradient.to_dense() * undone_scale
                summed = summed.to_dense().detach()
                rounding = 1e-4 * float(summed.nan_to_num(0, 0, 0).abs().max())
                return torch.allclose(whole.to(summed), summed, rtol=1e-4, atol=rounding, equal_nan=True)
        return False

    def norms(self) -> Tensor | HeldNorms:
        """As in `Accumulation`, but computed later unless the step had many small batches."""
        if self.gathered.kinds:
            self._show_to_kinds()
        self._add_row(self.gradient.own())
        return torch.cat([*self._folded, self._rows.take()]) if self._folded else self._rows.hold()

    def _show_to_kinds(self) -> None:
        """Hand all small batches over; none where there were so many that some have been folded."""
        rows, sizes = self._rows.waiting, [size.num_examples for size in self.gathered.sizes]
        if len(rows) != len(sizes) or any(isinstance(size, Tensor) for size in sizes):
            self.step.gather(self.gathered.without_kinds())
            return
        for gradients, size in zip(rows, sizes, strict=True):
            indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
            self._add_to_kinds(indices, [gradient for gradient in gradients if gradient is not None])
            for kind in self.gathered.kinds:
                assert not isinstance(size, Tensor)
                kind.end_small_batch(1.0 if size is None else size)
