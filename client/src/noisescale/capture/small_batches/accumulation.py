"""Gathers the small batches of one optimizer step.

`p.grad` at log time is the mean gradient over the step, so a small batch adds s_k = p_k g_k to it, p_k = n_k / N, and
W = Σ p_k |g_k|² = N Σ |s_k|² / n_k. Whoever divides the loss by the number of accumulations gets exactly that where all
are equal; where they are not, a loss must weigh n_k / N. What else scales both norms (a loss summed over examples, a
loss scaler) is undone in `step_values.py`.
"""

# P parameters, G groups, C columns (all parameters, then each group), K entries; rows as `row_sums.py` has them

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from noisescale.capture.hooks.followed_forwards import Forward
from noisescale.capture.hooks.step_forwards import Pairing, StepForwards, whose_examples
from noisescale.capture.kinds.kind import Kind
from noisescale.capture.small_batches.held_rows import HeldNorms
from noisescale.capture.small_batches.ignored_gradients import IgnoredGradients
from noisescale.capture.small_batches.main_gradients import MainGradients
from noisescale.capture.small_batches.pending_gradients import PendingGradients
from noisescale.capture.small_batches.row_sums import ColumnRows, ParameterRows, RowSums, membership
from noisescale.capture.small_batches.small_batches import SmallBatchSize, total_size
from noisescale.capture.small_batches.witness import Witness
from noisescale.capture.sources.gradient_source import GradientSource
from noisescale.kernels.squared_norms import condense, values_that_count

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSum

LocalGradients = Callable[[], list[Tensor | None]]

TWICE = (
    "two backward passes went through one forward: add the losses and call backward() once, or put both passes into "
    "`with run.micro_batch():`; where they hold different examples, each into one with their number"
)

UNPAIRED = "several forwards came before it, and none of them was followed yet; from the next step on each is"


class Accumulation:
    """Squared norms and sizes of the small batches since the last optimizer step.

    Args:
        parameters: In the order of their indices.
        group_of_parameter: Index of each parameter's group; -1 for none.
        num_groups: G.
        kinds: Further kinds of noise scale, which see the same small batches.
        counts_only: Small batches are counted, and their gradients not looked at.
        is_alone: Each backward changes `p.grad` as autograd does by itself; not so in data-parallel jobs.
        local_gradients: Gives the part of each `p.grad` that this process holds; None: all of it.
        source: Takes each backward apart into small batches; None: it is one.
        in_fp32: Add gradients up in 32 bit, in the pass that measures them; this changes the training's rounding.
        pairing: What is known of forwards and backward passes from before.

    Attributes:
        num_columns: C.
        member_PC: 1 where a parameter belongs to a column, fp64.
        main: Adds gradients up in place of autograd; None: autograd does.
        sizes: Of the small batches so far.
        adds_up: The gradient is still the sum of the small batches.
        reason: Why a backward could not be taken apart into small batches; None where each could.
        is_partial: Some parameters had a gradient in some small batches only.
        kinds_in_step: The further kinds that this step can give terms of.
        has_been_logged: Nothing has happened since the step was logged.
        is_marked: Inside `micro_batch()`.
        is_ignoring: Inside `ignore()`.
        forwards: Those of the step so far.
        exchanged: The sums over ranks that hold this step's small batches, in data-parallel jobs.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        group_of_parameter: Sequence[int],
        num_groups: int,
        kinds: Sequence[Kind] = (),
        *,
        source: GradientSource | None = None,
        local_gradients: LocalGradients | None = None,
        counts_only: bool = False,
        is_alone: bool = True,
        in_fp32: bool = False,
        pairing: Pairing | None = None,
    ) -> None:
        self._parameters = list(parameters)
        self.forwards = StepForwards(pairing or Pairing())
        self.num_columns = 1 + num_groups
        self.member_PC = membership(group_of_parameter, num_groups, parameters[0].device)
        self._kinds = kinds
        self._counts_only = counts_only
        self._is_alone = is_alone
        self._has_seen = False
        self._local_gradients = local_gradients or (lambda: [p.grad for p in self._parameters])
        self._source = source
        self._row_sums: RowSums = ParameterRows(len(parameters), self.member_PC)
        if source is None and ColumnRows.suits(parameters, in_fp32=in_fp32):
            self._row_sums = ColumnRows(parameters, group_of_parameter, num_groups)
        self.pending = PendingGradients(parameters, self._add_to_kinds if kinds else None, self._row_sums)
        self.main: MainGradients | None = None
        if in_fp32 and MainGradients.changes(parameters, self._row_sums):
            self.main = MainGradients(parameters, self._row_sums, self.pending)
        self._witness = Witness(parameters)
        self.is_marked = False
        self.is_ignoring = False
        self.start_step()

    def start_step(self) -> None:
        """Forget everything: the next backward belongs to a new step."""
        if self.main is not None:
            self.main.start_step()
        self.pending.clear()
        if self._source is not None:
            self._source.clear()
        self._witness.forget()
        self.has_been_logged = False
        self.adds_up = True
        self.reason: str | None = None
        self.is_partial = False
        self.sizes: list[SmallBatchSize] = []
        self._sq_norm_rows: list[Tensor] = []
        self._last_indices: set[int] = set()
        self._before_last: tuple[bool, set[int]] = False, set()  # `is_partial` and indices before the last small batch
        self._ignored = IgnoredGradients()
        self._before: tuple[int, Tensor | None, int] | None = None
        self._step = object()  # what `Forward.counted_in` holds
        self.forwards.start_step()
        self.exchanged: list[RankSum] = []
        self.kinds_in_step = [kind for kind in self._kinds if kind.is_ready()]
        for kind in self.kinds_in_step:
            kind.clear()

    def end_step(self) -> None:
        """Forget everything, at the end of an optimizer step."""
        self.start_step()
        self.forwards.clear()
        self.forwards.pairing.end_step()

    @property
    def is_following(self) -> bool:
        """Whether somebody has to tell which forwards a backward has come through."""
        return self._source is None and self.forwards.pairing.is_following

    def see_forward(self, num_examples: float | None, *, is_training: bool, num_followed: int = 0) -> Forward | None:
        """Count the examples of a forward; None of one inside `ignore()`.

        Whether a backward comes through its output decides, where that is known; else its mode does.

        Args:
            num_examples: None where its input does not tell.
            is_training: The model is in training mode; then forwards in evaluation mode count for nothing.
            num_followed: Forwards since the last small batch that a backward has followed.
        """
        if self.is_ignoring:
            return None
        return self.forwards.see(num_examples, is_training=is_training, num_followed=num_followed)

    def begin_backward(self, index: int) -> None:
        """Look whether the gradients are still those of the small batches so far.

        Args:
            index: Of the first parameter whose gradient is there; it has not been added to `p.grad` yet.
        """
        if self._witness.is_cleared or (self.has_been_logged and self._witness.is_changed):
            self.start_step()  # no optimizer step: an AMP scaler or the loop itself skipped it
        elif self._witness.is_changed:
            self.adds_up = False
        if self.is_ignoring and not self.pending.is_empty:
            self.keep_pending()  # of a marked small batch; the backward that begins adds to `p.grad` in place
        if self.main is not None:
            self.main.begin()
        gradient = self._parameters[index].grad
        self._before = index, gradient, 0 if gradient is None else gradient._version

    def _has_moved(self) -> bool:
        """Whether the backward that ends now has changed `p.grad`; `torch.autograd.grad` leaves it as it is."""
        if not self._is_alone or self._before is None:
            return True
        index, before, version = self._before
        gradient = self._parameters[index].grad
        return gradient is not before or (gradient is not None and gradient._version != version)

    def _forget_backward(self) -> None:
        """Leave a backward out that was none of the step's; its forwards count only if no others follow."""
        self.forwards.are_used = True
        self.adds_up &= not self.is_marked
        self.pending.clear()
        self._ignored.drop()
        self._has_seen = False
        self.kinds_in_step = []
        if self._source is not None:
            self._source.clear()

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """Take a parameter's gradient, before autograd adds it to `p.grad`."""
        if self._ignored.sums and self._parameters[index].grad is None:
            self._ignored.sums.pop(index, None)
        is_plain = self.is_marked or self.is_ignoring
        if self.main is not None and self.main.take_off(index, gradient, is_measured=not is_plain):
            return
        if self.is_ignoring:
            self._ignored.see(index, gradient)
        elif self._counts_only:
            self._has_seen = True
        elif self._source is not None:
            self._source.see_gradient(index, gradient)
        else:
            self.pending.add(index, gradient, may_reduce=not self.is_marked)

    def end_backward(self, reached: Sequence[Forward] = ()) -> None:
        """Close the small batch, unless it is marked and may hold several backward passes.

        Args:
            reached: Forwards that the backward has come through, as far as they were followed.
        """
        if self.main is not None:
            self.main.finish()
        if not self._has_moved():
            self._forget_backward()
        elif self.is_ignoring:
            self._ignored.keep()
        else:
            if self._source is None:
                self.forwards.end_backward(reached)
            if not self.is_marked:
                self.end_small_batch(None)

    def break_off(self) -> None:
        """Leave out what a backward has handed over that failed half-way."""
        if self.main is not None:
            self.main.finish(has_failed=True)
        self.pending.clear()

    def remember_gradient(self) -> None:
        """From here on a gradient that changes is no longer the sum of the small batches."""
        self._witness.remember()

    def end_small_batch(self, num_examples: float | Tensor | None) -> None:
        """Reduce what is pending and count a small batch.

        Args:
            num_examples: As marked; None: what the forwards since the last small batch saw.
        """
        if self._source is not None:
            self._take_apart(self._source)
            return
        indices = self._take_pending()
        reached = self.forwards.take()
        if not indices:
            return
        self.adds_up &= self.pending.is_complete
        counted = [forward for forward in reached if forward.counted_in is self._step]
        if self.sizes and num_examples is None and len(counted) == len(reached) and not indices & self._last_indices:
            # Other parameters, the same examples: a loss for each of two networks, or reentrant checkpointing, which
            # runs a backward for each segment.
            self._merge_last_two()
            self._last_indices = self._last_indices | indices
            was_partial, before = self._before_last
            self.is_partial = was_partial or (bool(before) and self._last_indices != before)
            self.kinds_in_step = []  # they have closed the small batch already
            return
        size = num_examples
        if counted and size is None:
            self.adds_up, self.reason, size = False, TWICE, 0.0
        elif size is None and not self.forwards.is_known:
            self.reason = UNPAIRED
            self.adds_up &= len({forward.num_examples for forward in reached}) == 1  # see `SmallModelAccumulation`
        elif size is None:
            size = total_size([forward.num_examples for forward in whose_examples(reached)])
        self.forwards.is_known = True
        for forward in reached:
            forward.counted_in = self._step
        self.forwards.clear()
        self._count(indices, size, num_examples is not None)
        if isinstance(size, Tensor):
            self.kinds_in_step = []  # they need sizes on the host
        for kind in self.kinds_in_step:
            assert not isinstance(size, Tensor)
            kind.end_small_batch(1.0 if size is None else size)

    def _count(self, indices: set[int], size: float | Tensor | None, is_marked: bool) -> None:
        """Count a small batch in which these parameters had a gradient."""
        self._before_last = self.is_partial, self._last_indices
        self.is_partial |= bool(self._last_indices) and indices != self._last_indices
        self.sizes.append(SmallBatchSize(size, is_marked))
        self._last_indices = indices

    def _take_apart(self, source: GradientSource) -> None:
        """Count the small batches of a backward."""
        entries = source.take()
        if source.reason is not None:
            self.adds_up = False
            self.reason = source.reason
            if not entries:  # its examples are part of the step all the same
                nothing_P = self.member_PC.new_zeros(len(self._parameters))
                size = total_size(self.forwards.sizes()) if self.forwards else 0.0
                entries = [(nothing_P, SmallBatchSize(size))]
        self.forwards.clear()
        for sq_norm_P, entry in entries:
            self._sq_norm_rows.append(sq_norm_P)
            self.sizes.append(entry)

    def keep_pending(self) -> None:
        """Keep what is pending from being written over, where it is the memory of `p.grad`."""
        self.pending.keep([p.grad for p in self._parameters])

    @property
    def has_ignored(self) -> bool:
        """Whether `p.grad` holds something that `ignore()` kept out of the small batches."""
        return bool(self._ignored.sums)

    def take_small_batches(self) -> tuple[Tensor, list[SmallBatchSize]]:
        """Σ |s|² of each entry so far, [K, C] fp64, and their sizes; then forget them, but not the step."""
        sizes, self.sizes = self.sizes, []
        rows, self._sq_norm_rows = self._sq_norm_rows, []
        if not rows:
            return self.member_PC.new_zeros(len(sizes), self.num_columns), sizes
        return self._row_sums.columns(rows), sizes

    def big_sq_norms(self) -> Tensor:
        """|p.grad|² of each column, [C] fp64."""
        row = self._big_row()
        return self.member_PC.new_zeros(self.num_columns) if row is None else self._row_sums.columns([row])[0]

    def _add_to_kinds(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        for kind in self.kinds_in_step:
            kind.add(indices, gradients)

    def _take_pending(self) -> set[int]:
        """Reduce what is pending; which parameters had a gradient."""
        if self._counts_only:
            has_seen, self._has_seen = self._has_seen, False
            return set(range(len(self._parameters))) if has_seen else set()
        taken = self.pending.take()
        if taken is None:
            return set()
        self._sq_norm_rows.append(taken[1])
        return taken[0]

    def _merge_last_two(self) -> None:
        last = self._sq_norm_rows.pop()
        self._sq_norm_rows[-1] = self._sq_norm_rows[-1] + last

    def look_at_gradient(self, undone_scale: Tensor | None = None) -> None:
        """Look once more whether the gradient is the sum of the small batches, before it is used.

        Args:
            undone_scale: Of a loss scaler, where the gradients have been divided by it since; that alone is no change.
        """
        if self._witness.is_cleared or self._witness.is_changed:
            self.adds_up = False
        if undone_scale is not None:
            self._witness.forget_values()
        if self.main is not None and (undone_scale is not None or not self.adds_up):
            self.main.forget_big()

    def has_other_values(self) -> Tensor | None:
        """1 where the gradient changed since the last backward and torch's counter does not tell; None: not known."""
        return self._witness.has_other_values()

    def norms(self) -> Tensor | HeldNorms:
        """Σ |s|² of each entry, then |p.grad|², [K + 1, C] fp64, on the device, without waiting.

        To be called once a step, with one small batch at least.
        """
        big = self._big_row()
        return self._row_sums.columns(
            [*self._sq_norm_rows, torch.zeros_like(self._sq_norm_rows[0]) if big is None else big]
        )

    def _own_gradients(self) -> list[Tensor | None]:
        """`p.grad` of each parameter, without what `ignore()` kept out."""
        gradients = self._ignored.taken_off(self._local_gradients())
        if self._source is not None:
            for index in self._source.dropped:
                gradients[index] = None
        return gradients

    def _big_row(self) -> Tensor | None:
        """|p.grad|²; None where there is no gradient."""
        known = None if self.main is None or self._ignored.sums else self.main.big_row()
        if known is not None:
            return known
        gradients = self._own_gradients()
        indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
        if not indices:
            return None
        condensed = [condense(values_that_count(gradient)) for gradient in gradients if gradient is not None]
        return self._row_sums.row([self._row_sums.part(indices, condensed)])
