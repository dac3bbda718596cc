"""Gradients of a small model, kept as autograd hands them over and looked at only when somebody asks.

Where a backward takes less than a millisecond each call into Python counts, so the hook on a parameter is a list's own
`append`. To hold a gradient itself makes autograd copy it where it would have handed its memory on to `p.grad`: the
numbers stay the same, and for a small model the copy is cheaper than one call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Gradients = Sequence[Tensor | None]


@dataclass(frozen=True, slots=True)
class Pass:
    """What a backward added to the gradients.

    Attributes:
        gradients: One entry a parameter.
        num_forwards: Forwards that it belongs to; 0 where that is unknown.
    """

    gradients: Gradients
    num_forwards: int


@dataclass(frozen=True, slots=True)
class Passes:
    """Backward passes in their order.

    Attributes:
        whole: The first of them, each with one forward and a gradient for every parameter.
        others: Those behind.
        is_regular: Nothing but these passes has changed the gradients.
        is_paired: It is clear which forwards each belongs to: at most one was made since each was followed by one.
    """

    whole: Sequence[Gradients]
    others: Sequence[Pass]
    is_regular: bool
    is_paired: bool

    def all(self) -> list[Pass]:
        """Of both sorts."""
        return [*(Pass(gradients, 1) for gradients in self.whole), *self.others]


class GradientLists:
    """One list a parameter, with a gradient for each backward pass.

    One parameter stands for all when it comes to whether somebody has changed the gradients: torch counts the changes
    in place, and each backward makes one.

    Args:
        parameters: In the order of their indices.
        capacity: Backward passes that may wait.
    """

    def __init__(self, parameters: Sequence[Tensor], capacity: int) -> None:
        self._parameters = parameters
        self._capacity = capacity
        self._lists: list[list[Tensor]] = [[] for _ in parameters]
        self._witness = 0
        self._first_version = version_of_held_gradient()
        self.forget()

    def hook(self, index: int) -> Callable[[Tensor], None]:
        """What takes the gradients of a parameter."""
        return self._lists[index].append

    def forget(self) -> None:
        """Forget everything; the gradients may be anything now."""
        for gradients in self._lists:
            gradients.clear()
        self._num_paired = 0
        self._num_looked_at = 0
        self._is_known = False
        self._gradient: Tensor | None = None
        self._version = 0
        self._is_regular = True

    def keep_pace(self, num_forwards: int) -> bool:
        """Whether each forward was followed by one whole backward and nothing else, so that nothing has to be done yet.

        To be asked at each forward, before it counts.

        Args:
            num_forwards: Forwards since the last `take()`.
        """
        num_passes = len(self._lists[0])
        self._look()
        if num_passes != num_forwards or not self._is_regular or num_passes >= self._capacity:
            return False
        for gradients in self._lists:
            if len(gradients) != num_passes:
                return False
        self._num_paired = num_passes
        return True

    def _look(self) -> None:
        """Compare the gradients with what they were, and remember what they are."""
        num_passes = len(self._lists[self._witness])
        gradient = self._parameters[self._witness].grad
        num_new = num_passes - self._num_looked_at
        version = 0 if gradient is None else gradient._version
        is_same = gradient is self._gradient
        if not self._is_known:
            self._is_regular &= num_new == 0 and gradient is None  # else it may be that of the step before
        elif is_same and gradient is not None:
            self._is_regular &= version == self._version + num_new
        elif is_same:
            self._is_regular &= num_new == 0
        else:  # made by the first backward, and not touched since
            self._is_regular &= self._gradient is None and num_new == 1 and version == self._first_version
        self._is_known, self._num_looked_at = True, num_passes
        self._gradient, self._version = gradient, version

    def take(self, num_forwards: int) -> Passes:
        """The backward passes since the last call; then forget.

        As many passes as there were forwards where each gave every parameter its gradient. Whatever else there is, such
        as the parts that reentrant checkpointing hands over, is taken as parts of one pass. That is always valid: the
        sum is the gradient of one small batch with the examples of all.

        Args:
            num_forwards: Forwards since the last call; 0 where that is unknown.
        """
        self._look()
        lengths = [len(gradients) for gradients in self._lists]
        num_passes = max(lengths)
        whole: Sequence[Gradients] = []
        others: list[Pass] = []
        if num_passes:
            num_whole = num_forwards if min(lengths) == num_passes == num_forwards else self._num_paired
            whole = list(zip(*self._lists, strict=False))[:num_whole]
            if num_passes > num_whole:
                others = _split([gradients[num_whole:] for gradients in self._lists], num_forwards - num_whole)
            if not lengths[self._witness]:
                self._witness = next(index for index, length in enumerate(lengths) if length)
                self._is_known = False
            for gradients in self._lists:
                gradients.clear()
        taken = Passes(whole, others, self._is_regular, num_forwards - self._num_paired <= 1 or not num_passes)
        self._is_regular = True
        self._num_paired = self._num_looked_at = 0
        return taken


def version_of_held_gradient() -> int:
    """What torch counts for a `p.grad` that a first backward has made while somebody holds the gradient."""
    held: list[Tensor] = []
    with torch.inference_mode(False), torch.enable_grad():
        parameter = torch.zeros(2, requires_grad=True)
        parameter.register_hook(held.append)
        (parameter * parameter).sum().backward()
    assert parameter.grad is not None
    return parameter.grad._version


def _split(lists: Sequence[Sequence[Tensor]], num_forwards: int) -> list[Pass]:
    """The passes in these lists, or one that is the sum of all."""
    lengths = {len(gradients) for gradients in lists}
    num_passes = max(lengths)
    if lengths - {0, num_passes} or num_forwards not in (0, num_passes):
        return [Pass([total(gradients) for gradients in lists], num_forwards)]
    of_each = 1 if num_forwards else 0
    return [Pass([gradients[i] if gradients else None for gradients in lists], of_each) for i in range(num_passes)]


def total(gradients: Gradients) -> Tensor | None:
    """Their sum; None of none."""
    summed = None
    for gradient in gradients:
        if gradient is not None:
            summed = gradient if summed is None else summed + gradient
    return summed
