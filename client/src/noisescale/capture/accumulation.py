"""Gathers the small batches of one optimizer step.

The loss scaling is undone here and nowhere else. `p.grad` at log time is the mean gradient over the step, so a small
batch adds s_k = p_k g_k to it, p_k = n_k / N, and W = Σ p_k |g_k|² = Σ |s_k|² N / n_k. Whoever divides the loss by the
number of accumulations gets exactly that where all are equal; where they are not, a loss must weigh n_k / N. Where the
loss is summed over examples both norms are divided by N².
"""

# P parameters, G groups, K small batches

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from noisescale.capture.pending_gradients import PendingGradients, spread
from noisescale.capture.squared_norms import squared_norms
from noisescale.capture.step_norms import SmallBatchSize, StepSizes, resolve_sizes
from noisescale.capture.witness import Witness


class Accumulation:
    """Squared norms and sizes of the small batches since the last optimizer step."""

    def __init__(self, parameters: Sequence[Tensor], group_of_parameter: Sequence[int], num_groups: int) -> None:
        self._parameters = list(parameters)
        self._group_of_parameter = [group if group >= 0 else num_groups for group in group_of_parameter]
        self._num_groups = num_groups
        self._group_index_P: Tensor | None = None
        self.pending = PendingGradients(parameters)
        self._witness = Witness(parameters)
        self.is_marked = False
        self.is_ignoring = False
        self.start_step()
        self.clear_forwards()

    def start_step(self) -> None:
        """Forget everything: the next backward belongs to a new step."""
        self.pending.clear()
        self._witness.forget()
        self.has_been_logged = False
        self._adds_up = True
        self._sizes: list[SmallBatchSize] = []
        self._sq_norms_P: list[Tensor] = []
        self._last_indices: set[int] = set()
        self._ignored: dict[int, Tensor] = {}

    def clear_forwards(self) -> None:
        """Forget forwards that no backward has followed."""
        self._num_examples: float | None = None
        self._has_forward = False
        self._is_training = False

    def see_forward(self, num_examples: float | None, *, is_training: bool) -> None:
        """Count the examples of a forward.

        Args:
            num_examples: None where its input does not tell.
            is_training: The model is in training mode; then forwards in evaluation mode count for nothing.
        """
        if self.is_ignoring or (self._is_training and not is_training):
            return
        if is_training and not self._is_training:
            self.clear_forwards()
            self._is_training = True
        is_readable = num_examples is not None and (self._num_examples is not None or not self._has_forward)
        self._num_examples = (self._num_examples or 0) + (num_examples or 0) if is_readable else None
        self._has_forward = True

    def begin_backward(self) -> None:
        """Look whether the gradients are still those of the small batches so far."""
        if self._witness.is_cleared or (self.has_been_logged and self._witness.is_changed):
            self.start_step()  # no optimizer step: an AMP scaler or the loop itself skipped it
        elif self._witness.is_changed:
            self._adds_up = False

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """Take a parameter's gradient, before autograd adds it to `p.grad`."""
        if self._ignored and self._parameters[index].grad is None:
            self._ignored.pop(index, None)
        if self.is_ignoring:
            held = self._ignored.get(index)
            self._ignored[index] = gradient.detach().clone() if held is None else held + gradient.detach()
        else:
            self.pending.add(index, gradient, may_reduce=not self.is_marked)

    def end_backward(self) -> None:
        """Close the small batch, unless it is marked and may hold several backward passes."""
        if not self.is_marked and not self.is_ignoring:
            self.end_small_batch(None)

    def remember_gradient(self) -> None:
        """From here on a gradient that changes is no longer the sum of the small batches."""
        self._witness.remember()

    def end_small_batch(self, num_examples: float | None) -> None:
        """Reduce what is pending and count a small batch.

        Args:
            num_examples: As marked; None: what the forwards since the last small batch saw.
        """
        taken = self.pending.take()
        if taken is None:
            return
        indices, sq_norm_P = taken
        self._adds_up &= self.pending.is_complete
        if self._sizes and not self._has_forward and num_examples is None and not indices & self._last_indices:
            # Reentrant checkpointing runs a backward for each segment: other parameters, the same examples.
            self._sq_norms_P[-1] = self._sq_norms_P[-1] + sq_norm_P
            self._last_indices |= indices
            return
        size = self._num_examples if num_examples is None else num_examples
        self._sizes.append(SmallBatchSize(size, is_marked=num_examples is not None))
        self._sq_norms_P.append(sq_norm_P)
        self._last_indices = indices
        self.clear_forwards()

    def sizes(self, batch_size: float | None) -> StepSizes:
        """How the step's examples are spread over its small batches; see `resolve_sizes`."""
        if self._witness.is_cleared or self._witness.is_changed:
            self._adds_up = False
        return replace(resolve_sizes(self._sizes, batch_size), adds_up=self._adds_up)

    def norms(self, sizes: StepSizes, *, is_summed_loss: bool) -> Tensor:
        """[2, 1 + G] fp64: W and |ḡ|² over all parameters first, then per group; on the device, without waiting.

        Args:
            sizes: From `sizes()`, with two small batches at least and a known batch size.
            is_summed_loss: The loss is a sum over examples.
        """
        counted_P = [v for v, size in zip(self._sq_norms_P, self._sizes, strict=True) if size.num_examples != 0]
        if sizes.shares is None:
            weighted_P = torch.stack(counted_P).sum(0).mul_(sizes.num_small_batches)
        else:
            # Python numbers, not a tensor of weights: that one would have to travel to the device, and wait.
            weighted_P = torch.stack(torch._foreach_mul(counted_P, list(sizes.shares))).sum(0)
        sq_norms_2P = torch.stack([weighted_P, self._big_sq_norm()])
        if is_summed_loss:
            assert sizes.batch_size is not None
            sq_norms_2P.div_(sizes.batch_size**2)
        return self._with_groups(sq_norms_2P)

    def _with_groups(self, sq_norms_2P: Tensor) -> Tensor:
        total_21 = sq_norms_2P.sum(1, keepdim=True)
        if not self._num_groups:
            return total_21
        if self._group_index_P is None or self._group_index_P.device != sq_norms_2P.device:
            self._group_index_P = torch.tensor(self._group_of_parameter, device=sq_norms_2P.device)
        groups_2G = torch.zeros(2, self._num_groups, dtype=sq_norms_2P.dtype, device=sq_norms_2P.device)
        return torch.cat([total_21, groups_2G.index_add_(1, self._group_index_P, sq_norms_2P)], dim=1)

    def _big_sq_norm(self) -> Tensor:
        """|p.grad|² of each parameter, [P], without what `ignore()` kept out."""
        indices, gradients = [], []
        for index, parameter in enumerate(self._parameters):
            gradient = parameter.grad
            if gradient is not None:
                indices.append(index)
                gradients.append(gradient - self._ignored[index] if index in self._ignored else gradient)
        if not gradients:
            return torch.zeros_like(self._sq_norms_P[0])
        return spread([(indices, squared_norms(gradients))], len(self._parameters))
