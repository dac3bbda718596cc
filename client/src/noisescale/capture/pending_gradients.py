"""The gradients of the running backward, held until they are reduced to squared norms."""

# P parameters, N of them with a gradient

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.squared_norms import squared_norms

PENDING_BYTES = 32 << 20
"""Gradients held at most before they are reduced: what was just written is still in the cache."""


class PendingGradients:
    """Gradients of one small batch.

    A gradient is held as `detach()`: that leaves autograd free to hand its memory on to `p.grad`, as it does without
    us. So it must be reduced before the next backward adds to that memory.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._bytes = [p.numel() * p.element_size() for p in parameters]
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._held: list[Tensor | None] = [None] * len(self._bytes)
        self._held_bytes = 0
        self._reduced: list[tuple[list[int], Tensor]] = []
        self.is_complete = True

    @property
    def is_empty(self) -> bool:
        """Whether the backward has handed nothing over yet."""
        return not self._held_bytes and not self._reduced

    def holds(self, index: int) -> bool:
        """Whether a gradient of this parameter waits to be reduced."""
        return self._held[index] is not None

    def add(self, index: int, gradient: Tensor, *, may_reduce: bool) -> None:
        """Hold a gradient; one that is there already is added to, out of place: it may be the memory of `p.grad`.

        Args:
            index: Of the parameter.
            gradient: As autograd computed it, before it is added to `p.grad`.
            may_reduce: Reduce early when much is held. Not where the small batch has several backward passes.
        """
        held = self._held[index]
        if held is not None:
            self._held[index] = held + gradient.detach()
            return
        if self._reduced and any(index in indices for indices, _ in self._reduced):
            # Reentrant checkpointing hands a shared parameter's gradient over in parts: squares of parts do not add.
            self.is_complete = False
        self._held[index] = gradient.detach()
        self._held_bytes += self._bytes[index]
        if may_reduce and self._held_bytes > PENDING_BYTES:
            self._reduce()

    def take(self) -> tuple[set[int], Tensor] | None:
        """The parameters that had a gradient and the squared norms [P] of all, 0 where there was none; then forget."""
        self._reduce()
        reduced = self._reduced
        self._reduced = []
        if not reduced:
            return None
        return {index for indices, _ in reduced for index in indices}, spread(reduced, len(self._bytes))

    def _reduce(self) -> None:
        indices = [index for index, gradient in enumerate(self._held) if gradient is not None]
        if not indices:
            return
        self._reduced.append((indices, squared_norms([g for g in self._held if g is not None])))
        self._held = [None] * len(self._bytes)
        self._held_bytes = 0


def spread(reduced: Sequence[tuple[Sequence[int], Tensor]], num_parameters: int) -> Tensor:
    """Squared norms [P] from those of some parameters, 0 for the others; sums where a parameter appears twice.

    Built from views, not by index: an index list would have to travel to the device, and wait.
    """
    indices, sq_norm_N = reduced[0]
    if len(reduced) == 1 and len(indices) == num_parameters:
        return sq_norm_N
    entries: list[Tensor] = [torch.zeros((), dtype=sq_norm_N.dtype, device=sq_norm_N.device)] * num_parameters
    has_entry = [False] * num_parameters
    for indices, sq_norm_N in reduced:
        for index, sq_norm in zip(indices, sq_norm_N.unbind(), strict=True):
            entries[index] = entries[index] + sq_norm if has_entry[index] else sq_norm
            has_entry[index] = True
    return torch.stack(entries)
