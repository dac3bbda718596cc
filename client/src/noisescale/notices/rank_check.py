"""Whether data-parallel ranks see data of their own, drawn from the same ones, looked at over the steps of a run."""

from typing import TYPE_CHECKING

from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.heterogeneity import RankHeterogeneity, are_duplicates, mean_squares

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms


EQUAL_STEPS = 4
"""Steps in a row in which all ranks have the same gradient, and their micro-batches have not, are no chance."""

BARELY = 0.01
"""Ranks are equal only where what differs between them is far below what differs inside them."""


class RankCheck:
    """The F-test of noise between ranks against noise inside them, for one watched optimizer.

    Attributes:
        found: The sums of the test so far.
    """

    def __init__(self) -> None:
        self.found = RankHeterogeneity()
        self._num_equal = 0

    def flags_of(self, norms: "StepNorms") -> Flags:
        """Take a step in; flags of what is known after it."""
        if norms.rank_sq_norm is not None and norms.weighted_sq_norms and norms.sizes.batch_size is not None:
            self._add(norms, norms.rank_sq_norm, norms.sizes.batch_size)
        if self.found.is_repeated or self._num_equal >= EQUAL_STEPS:
            return Flags.REPEATED_RANKS
        return Flags.HETEROGENEOUS_RANKS if self.found.is_heterogeneous else Flags(0)

    def _add(self, norms: "StepNorms", rank_sq_norm: float, batch_size: float) -> None:
        if norms.sizes.num_small_batches <= norms.num_ranks or (
            norms.weighting == "equal" and not norms.sizes.are_equal
        ):
            return  # nothing varies inside a rank, or A1 and A2 are weighted in other ways than the test needs
        step = mean_squares(
            small_sq_norm=norms.weighted_sq_norms[0],
            rank_sq_norm=rank_sq_norm,
            big_sq_norm=norms.big_sq_norms[0],
            num_ranks=norms.num_ranks,
            num_small_batches=norms.sizes.num_small_batches,
            batch_size=batch_size,
        )
        are_equal = are_duplicates(small_sq_norm=rank_sq_norm, big_sq_norm=norms.big_sq_norms[0])
        self._num_equal = self._num_equal + 1 if are_equal and step.between < BARELY * step.within else 0
        self.found = self.found.plus(step)
