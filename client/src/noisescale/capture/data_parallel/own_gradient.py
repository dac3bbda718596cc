"""Squared norm of a rank's own gradient: all its small batches, before it is averaged over the ranks.

The mean of it over ranks is A2 of the F-test for ranks that see different data (`estimators/heterogeneity.py`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.squared_norms import squared_norms

HELD_BYTES = 32 << 20
"""Gradients held at most before they are reduced."""


class OwnGradient:
    """Adds up |a|² over the parameters of one backward.

    Attributes:
        is_wanted: Whether this backward is looked at.

    Args:
        reduces_at_once: Each gradient is overwritten soon after it is seen.
    """

    def __init__(self, *, reduces_at_once: bool) -> None:
        self._max_bytes = 0 if reduces_at_once else HELD_BYTES
        self.is_wanted = False
        self.clear()

    def clear(self) -> None:
        """Forget what was seen."""
        self._held: list[Tensor] = []
        self._held_bytes = 0
        self._sq_norm: Tensor | None = None

    def see(self, gradient: Tensor | None) -> None:
        """Take one parameter's accumulated gradient."""
        if gradient is None or not self.is_wanted:
            return
        self._held.append(gradient.detach())
        self._held_bytes += gradient.numel() * gradient.element_size()
        if self._held_bytes > self._max_bytes:
            self._reduce()

    def see_all(self, gradients: Sequence[Tensor | None]) -> None:
        """Take those of all parameters."""
        for gradient in gradients:
            self.see(gradient)

    def take(self) -> Tensor | None:
        """|a|², fp64, no dimensions; None where nothing was seen. Then forget."""
        self._reduce()
        sq_norm = self._sq_norm
        self.clear()
        return sq_norm

    def _reduce(self) -> None:
        if not self._held:
            return
        sq_norm: Tensor = torch.sum(squared_norms(self._held))
        self._sq_norm = sq_norm if self._sq_norm is None else self._sq_norm + sq_norm
        self._held = []
        self._held_bytes = 0
