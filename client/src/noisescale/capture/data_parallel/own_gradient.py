"""Squared norms of a rank's own gradient: all its small batches, before it is averaged over the ranks.

Ranks are the larger groups around the small batches: their mean |a|² is A2 of the F-test for ranks that see different
data (`estimators/heterogeneity.py`), and with `small_batches="ranks"` they are the small batches themselves.
"""

# P parameters

from collections.abc import Sequence

from torch import Tensor

from noisescale.capture.sums.row_sums import spread
from noisescale.kernels.squared_norms import squared_norms

HELD_BYTES = 32 << 20
"""Gradients held at most before they are reduced."""


class OwnGradient:
    """Collects |a|² of each parameter within one backward.

    Attributes:
        is_wanted: Whether this backward is looked at.
        is_incomplete: Some of it could not be told apart.
    """

    def __init__(self, num_parameters: int) -> None:
        self._num_parameters = num_parameters
        self.is_wanted = False
        self.clear()

    def clear(self) -> None:
        """Forget what was seen."""
        self._held: list[Tensor] = []
        self._held_indices: list[int] = []
        self._held_bytes = 0
        self._reduced: list[tuple[Sequence[int], Tensor]] = []
        self.is_incomplete = False

    def see(self, index: int, gradient: Tensor | None, *, is_overwritten: bool = False) -> None:
        """Take a parameter's accumulated gradient.

        Args:
            index: Of the parameter.
            gradient: Its gradient.
            is_overwritten: It is overwritten soon, and cannot wait for others.
        """
        if gradient is None or not self.is_wanted:
            return
        self._held.append(gradient.detach())
        self._held_indices.append(index)
        self._held_bytes += gradient.numel() * gradient.element_size()
        if is_overwritten or self._held_bytes > HELD_BYTES:
            self._reduce()

    def see_squared(self, indices: Sequence[int], sq_norm_N: Tensor) -> None:
        """Take the squared norms of some parameters, fp64."""
        if self.is_wanted and indices:
            self._reduced.append((indices, sq_norm_N))

    def take(self) -> Tensor | None:
        """|a|² of each parameter, [P] fp64; None where nothing was seen. Then forget."""
        self._reduce()
        reduced = [] if self.is_incomplete else self._reduced
        self.clear()
        return spread(reduced, self._num_parameters) if reduced else None

    def _reduce(self) -> None:
        if self._held:
            self._reduced.append((self._held_indices, squared_norms(self._held)))
            self._held, self._held_indices, self._held_bytes = [], [], 0
