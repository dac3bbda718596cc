"""What is looked at over the steps of a run: do its small batches tell what they seem to?"""

from dataclasses import replace
from typing import TYPE_CHECKING

from noisescale.guard import Notices
from noisescale.notices.explanations import WEIGHTED
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.heterogeneity import RankHeterogeneity, are_duplicates, mean_squares
from noisescale_core.estimators.neighbouring_steps import NeighbouringSteps
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.order_of_passes import PassOrder
from noisescale_core.estimators.size_weighting import SizeWeighting

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms

EQUAL_STEPS = 4
"""Steps in a row in which all ranks have the same gradient, and their micro-batches have not, are no chance."""

BARELY = 0.01
"""Ranks are equal only where what differs between them is far below what differs inside them."""

AVERAGED = (
    "micro-batches, or ranks, of different sizes are averaged with equal weight, though by their sizes was taken for "
    "granted; it is computed so from here on, before tr Σ was too high: say watch(..., "
    "loss=Loss(weighting='equal')), or divide each summed loss by the step's number of examples"
)

MICRO_BATCHES_WEIGHTED = (
    "weighting='equal' was said, but micro-batches are weighted by their sizes: leave it out, it makes the noise scale "
    "wrong"
)


class NeighbourCheck:
    """The comparison of neighbouring steps, for one watched optimizer; what was found once holds for the run.

    Args:
        notices: Says it once.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._steps = NeighbouringSteps()
        self._flags = Flags(0)

    def see_shared_weights(self) -> None:
        """The loss is divided by a sum over the batch: its examples depend on each other, whatever the steps show."""
        if not self._flags:
            self._flags = Flags.DEPENDENT_EXAMPLES
            self._notices.once(code_of(self._flags), WEIGHTED)

    def flags_of(self, norms: "StepNorms") -> Flags:
        """Take a step in; flags of what is known after it."""
        if norms.distances is not None and not self._flags:
            self._steps.add(norms.distances)
            excess = self._steps.excess
            if excess is not None:
                self._flags = flag = Flags.DEPENDENT_EXAMPLES
                size, factor = ("small", 1 + excess) if excess > 0 else ("large", 1 / (1 + excess))
                self._notices.once(code_of(flag), OF_FLAGS[flag].warning.format(size=size, factor=f"{factor:.2g}"))
        return self._flags


# Whether the small batches of a step are different terms of one loss, looked at over the steps of a run.


class OrderCheck:
    """The tests of exchangeable small batches, for one watched optimizer.

    Attributes:
        found: The sums of the tests so far.
    """

    def __init__(self) -> None:
        self.found = PassOrder()

    def flags_of(self, norms: "StepNorms", terms: Terms) -> Flags:
        """Take a step with an estimate in; flags of what is known after it."""
        mean_sq_norm = norms.weighted_sq_norms[0]
        if mean_sq_norm > 0:
            self.found = self.found.plus(norms.contrasts, terms.grad_sq_norm / mean_sq_norm)
        return Flags.DIFFERENT_SMALL_BATCHES if self.found.is_ordered else Flags(0)


# Whether data-parallel ranks see data of their own, drawn from the same ones, looked at over the steps of a run.


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


# Whether a loop weighs its micro-batches as it was said to, looked at over the steps of a run.


class WeightingCheck:
    """The slope of squared norms over sizes, for one watched optimizer.

    Attributes:
        found: The sums of the test so far.
    """

    def __init__(self, notices: Notices) -> None:
        self.found = SizeWeighting()
        self._notices = notices

    def flags_of(self, norms: "StepNorms") -> Flags:
        """Take a step in; flags of what is known after it."""
        if norms.size_slope is None:
            return Flags(0)
        self.found = self.found.plus(norms.size_slope)
        if norms.weighting == "by_size" and self.found.is_equal:
            self._notices.once("averaged", AVERAGED)
            return Flags.WEIGHTING_MISMATCH
        if norms.weighting == "equal" and self.found.is_by_size:
            self._notices.once("weighted", MICRO_BATCHES_WEIGHTED)
        return Flags(0)

    def corrected(self, norms: "StepNorms") -> "StepNorms":
        """The norms as the loop weighs its small batches, once that is known to be with equal weight."""
        if norms.weighting == "equal" or not norms.contribution_sq_norms or not self.found.is_equal:
            return norms
        num = norms.sizes.num_small_batches
        weighted = [num * contributed for contributed in norms.contribution_sq_norms]
        return replace(norms, weighting="equal", weighted_sq_norms=weighted)
