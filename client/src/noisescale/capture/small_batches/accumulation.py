"""Gathers the small batches of one optimizer step.

`p.grad` at log time is the mean gradient over the step, so a small batch adds s_k = p_k g_k to it, p_k = n_k / N, and
W = Σ p_k |g_k|² = N Σ |s_k|² / n_k. Whoever divides the loss by the number of accumulations gets exactly that where all
are equal; where they are not, a loss must weigh n_k / N. What else scales both norms (a loss summed over examples, a
loss scaler) is undone in `step_queue.py`.
"""

# P parameters, G groups, C columns (all parameters, then each group), K entries; rows as `row_sums.py` has them

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.forwards import FollowedForward, Pairing, StepForwards
from noisescale.capture.kinds.kind import Kind
from noisescale.capture.small_batches.main_gradients import MainGradients
from noisescale.capture.small_batches.step_gradient import LocalGradients, RunningBackward, StepGradient
from noisescale.capture.sources.gradient_source import GradientSource
from noisescale.capture.step import NO_INDICES, Gathered, Indices, Step
from noisescale.capture.sums.device_values import HeldNorms
from noisescale.capture.sums.pending_gradients import NO_TASK, PendingGradients
from noisescale.capture.sums.row_sums import ColumnRows, ParameterRows, RowSums, membership
from noisescale.capture.sums.small_batches import SmallBatchSize, total_size


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
        gradient: Of the step, as it is in `p.grad`.
        step: Its state, with what was gathered so far.
        forwards: Those of the step so far.
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
        self._kinds, self._source = kinds, source
        self._counts_only, self._is_alone = counts_only, is_alone
        self._has_seen = False
        self._row_sums: RowSums = ParameterRows(len(parameters), self.member_PC)
        if source is None and ColumnRows.suits(parameters, in_fp32=in_fp32):
            self._row_sums = ColumnRows(parameters, group_of_parameter, num_groups)
        self.pending = PendingGradients(parameters, rows=self._row_sums)
        adds_here = in_fp32 and MainGradients.changes(parameters, self._row_sums)
        self.main = MainGradients(parameters, self._row_sums, self.pending) if adds_here else None
        self.gradient = StepGradient(
            parameters, self._row_sums, local_gradients=local_gradients, source=source, main=self.main
        )
        self.step = Step(self._forget())

    def start_step(self) -> None:
        """Forget everything: the next backward belongs to a new step, though the optimizer has made none."""
        self.step.start_anew(self._forget())

    def end_step(self) -> None:
        """Forget everything, at the end of an optimizer step."""
        self.step.begin(self._forget())
        self.forwards.clear()
        self.forwards.pairing.end_step()

    def _forget(self) -> Gathered:
        """Forget everything; what a new step begins with."""
        if self.main is not None:
            self.main.start_step()
        self.pending.clear()
        if self._source is not None:
            self._source.clear()
        self.gradient.start_step()
        self._backward: RunningBackward | None = None
        self.forwards.start_step()
        nothing = Gathered.nothing(self._kinds)
        self.pending.on_reduce = self._add_to_kinds if nothing.kinds else None
        return nothing

    @property
    def gathered(self) -> Gathered:
        """The small batches of the step so far."""
        return self.step.gathered

    def _doubt(self, reason: str | None = None) -> None:
        """The gradient is not the sum of the small batches."""
        self.step.gather(self.gathered.doubted(reason))

    @property
    def is_following(self) -> bool:
        """Whether somebody has to tell which forwards a backward has come through."""
        return self._source is None and self.forwards.pairing.is_following

    def see_forward(
        self, num_examples: float | None, *, is_training: bool, num_followed: int = 0
    ) -> FollowedForward | None:
        """Count the examples of a forward; None of one inside `ignore()`.

        Whether a backward comes through its output decides, where that is known; else its mode does.

        Args:
            num_examples: None where its input does not tell.
            is_training: The model is in training mode; then forwards in evaluation mode count for nothing.
            num_followed: Forwards since the last small batch that a backward has followed.
        """
        if self.step.section.is_ignored:
            return None
        return self.forwards.see(num_examples, is_training=is_training, num_followed=num_followed)

    def begin_backward(self, index: int, task: int = NO_TASK) -> None:
        """Look whether the gradients are still those of the small batches so far.

        Args:
            index: Of the first parameter whose gradient is there; it has not been added to `p.grad` yet.
            task: By which torch knows the backward.
        """
        witness = self.gradient.witness
        if witness.is_cleared or (self.step.is_logged and witness.is_changed):
            self.start_step()  # no optimizer step: an AMP scaler or the loop itself skipped it
        elif witness.is_changed:
            self._doubt()
        if self.step.section.is_ignored and not self.pending.is_empty:
            self.keep_pending()  # of a marked small batch; the backward that begins adds to `p.grad` in place
        if self.main is not None:
            self.main.begin()
        self._backward = RunningBackward.at(self._parameters[index])
        are_held = self._source is None and self.main is None and not self._counts_only
        is_plain = task >= 0 and are_held and self.step.section.is_plain and not self.gradient.ignored.sums
        self.pending.plain_task = task if is_plain else NO_TASK

    def _forget_backward(self) -> None:
        """Leave a backward out that was none of the step's."""
        self.forwards.use_up()
        if self.step.section.is_marked:
            self._doubt()
        self.pending.clear()
        self.gradient.ignored.drop()
        self._has_seen = False
        self.step.gather(self.gathered.without_kinds())
        if self._source is not None:
            self._source.clear()

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """Take a parameter's gradient, before autograd adds it to `p.grad`."""
        ignored = self.gradient.ignored
        if ignored.sums and self._parameters[index].grad is None:
            ignored.forget(index)
        section = self.step.section
        if self.main is not None and self.main.take_off(index, gradient, is_measured=section.is_plain):
            return
        if section.is_ignored:
            ignored.see(index, gradient)
        elif self._counts_only:
            self._has_seen = True
        elif self._source is not None:
            self._source.see_gradient(index, gradient)
        else:
            self.pending.add(index, gradient, may_reduce=not section.is_marked)

    def end_backward(self, reached: Sequence[FollowedForward] = ()) -> None:
        """Close the small batch, unless it is marked and may hold several backward passes.

        Args:
            reached: Forwards that the backward has come through, as far as they were followed.
        """
        if self.main is not None:
            self.main.finish()
        if self._is_alone and self._backward is not None and not self._backward.has_moved():
            self._forget_backward()
        elif self.step.section.is_ignored:
            self.gradient.ignored.keep()
        else:
            if self._source is None:
                self.forwards.end_backward(reached)
            if not self.step.section.is_marked:
                self.end_small_batch(None)

    def break_off(self) -> None:
        """Leave out what a backward has handed over that failed half-way."""
        if self.main is not None:
            self.main.finish(has_failed=True)
        self.pending.clear()

    def fail(self) -> None:
        """Something of ours has failed within a backward or behind it: what was gathered may lack a small batch."""
        self.pending.clear()
        self._doubt()

    def remember_gradient(self) -> None:
        """From here on a gradient that changes is no longer the sum of the small batches."""
        self.gradient.witness.remember()

    def end_small_batch(self, num_examples: float | Tensor | None) -> None:
        """Reduce what is pending and count a small batch.

        Args:
            num_examples: As marked; None: what the forwards since the last small batch saw.
        """
        if self._source is not None:
            self._take_apart(self._source)
            return
        indices, rows = self._take_pending()
        reached = self.forwards.take()
        if not indices:
            return
        gathered = self.step.gathered if self.pending.is_complete else self.step.gathered.doubted()
        is_other_half = gathered.sizes and not indices & gathered.last and self.forwards.were_counted(reached)
        if is_other_half and num_examples is None:
            # The same examples: a loss for each of two networks, or reentrant checkpointing, a backward a segment.
            self.step.gather(gathered.with_last_joined(indices, *rows))
            return
        size = num_examples
        if size is None:
            examples = self.forwards.examples_of(reached)
            size = examples.num
            if examples.reason is not None:
                gathered = gathered.doubted(examples.reason, adds_up=examples.adds_up)
        self.forwards.count(reached)
        if isinstance(size, Tensor):
            gathered = gathered.without_kinds()  # they need sizes on the host
        self.step.gather(gathered.with_small_batches(indices, [SmallBatchSize(size, num_examples is not None)], *rows))
        for kind in gathered.kinds:
            assert not isinstance(size, Tensor)
            kind.end_small_batch(1.0 if size is None else size)

    def _take_apart(self, source: GradientSource) -> None:
        """Count the small batches of a backward."""
        entries = source.take()
        if source.reason is not None:
            self._doubt(source.reason)
            if not entries:  # its examples are part of the step all the same
                nothing_P = self.member_PC.new_zeros(len(self._parameters))
                size = total_size(self.forwards.sizes()) if self.forwards else 0.0
                entries = [(nothing_P, SmallBatchSize(size))]
        self.forwards.clear()
        self.step.gather(self.gathered.with_entries(entries))

    def keep_pending(self) -> None:
        """Keep what is pending from being written over, where it is the memory of `p.grad`."""
        self.pending.keep([p.grad for p in self._parameters])

    def take_small_batches(self) -> tuple[Tensor, list[SmallBatchSize]]:
        """Σ |s|² of each entry so far, [K, C] fp64, and their sizes; then forget them, but not the step."""
        sizes, rows = list(self.gathered.sizes), self.gathered.sq_norm_rows
        self.step.gather(self.gathered.handed_over())
        return self._row_sums.columns(rows) if rows else self.member_PC.new_zeros(len(sizes), self.num_columns), sizes

    def big_sq_norms(self) -> Tensor:
        """|p.grad|² of each column, [C] fp64."""
        row = self.gradient.row()
        return self.member_PC.new_zeros(self.num_columns) if row is None else self._row_sums.columns([row])[0]

    def _add_to_kinds(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        for kind in self.gathered.kinds:
            kind.add(indices, gradients)

    def _take_pending(self) -> tuple[Indices, Sequence[Tensor]]:
        """Reduce what is pending; which parameters had a gradient, and the row of their squared norms."""
        if self._counts_only:
            has_seen, self._has_seen = self._has_seen, False
            return frozenset(range(len(self._parameters))) if has_seen else NO_INDICES, ()
        taken = self.pending.take()
        return (NO_INDICES, ()) if taken is None else (taken[0], taken[1:])

    def look_at_gradient(self, undone_scale: Tensor | None = None) -> None:
        """Look once more whether the gradient is the sum of the small batches, before it is used.

        Args:
            undone_scale: Of a loss scaler, where the gradients have been divided by it since; that alone is no change.
        """
        if self.gradient.witness.is_cleared or self.gradient.witness.is_changed:
            self._doubt()
        self.gradient.look_closer(undone_scale, adds_up=self.gathered.adds_up)

    def norms(self) -> Tensor | HeldNorms:
        """Σ |s|² of each entry, then |p.grad|², [K + 1, C] fp64, on the device, without waiting.

        To be called once a step, with one small batch at least.
        """
        rows, big = self.gathered.sq_norm_rows, self.gradient.row()
        return self._row_sums.columns([*rows, torch.zeros_like(rows[0]) if big is None else big])
