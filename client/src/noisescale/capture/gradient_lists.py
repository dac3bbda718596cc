"""Gradients of a small model, kept as autograd hands them over and looked at only when somebody asks.

Where a backward takes less than a millisecond each call into Python counts, so the hook on a parameter is a list's own
`append`. To hold a gradient itself makes autograd copy it where it would have handed its memory on to `p.grad`: the
numbers stay the same, and for a small model the copy is cheaper than one call.
"""

from collections.abc import Callable, Sequence

from torch import Tensor

Gradients = Sequence[Tensor | None]


class GradientLists:
    """One list a parameter, with a gradient for each backward pass."""

    def __init__(self, num_parameters: int) -> None:
        self._lists: list[list[Tensor]] = [[] for _ in range(num_parameters)]

    def hook(self, index: int) -> Callable[[Tensor], None]:
        """What takes the gradients of a parameter."""
        return self._lists[index].append

    def clear(self) -> None:
        """Forget everything."""
        for gradients in self._lists:
            gradients.clear()

    def take(self, num_forwards: int) -> list[Gradients]:
        """The gradients of each backward pass since the last call; then forget.

        As many passes as there were forwards where each gave every parameter its gradient. Whatever else there is, such
        as the parts that reentrant checkpointing hands over, is taken as parts of one pass. That is always valid: the
        sum is the gradient of one small batch with the examples of all.

        Args:
            num_forwards: Forwards since the last call; 0 where that is unknown.
        """
        lengths = {len(gradients) for gradients in self._lists}
        if lengths == {1}:
            taken: list[Gradients] = [[gradients[0] for gradients in self._lists]]
        elif lengths == {0}:
            return []
        else:
            num_passes = max(lengths)
            if lengths - {0, num_passes} or num_forwards not in (0, num_passes):
                taken = [[total(gradients) for gradients in self._lists]]
            else:
                taken = [[gradients[i] if gradients else None for gradients in self._lists] for i in range(num_passes)]
        self.clear()
        return taken


def total(gradients: Gradients) -> Tensor | None:
    """Their sum; None of none."""
    summed = None
    for gradient in gradients:
        if gradient is not None:
            summed = gradient if summed is None else summed + gradient
    return summed
