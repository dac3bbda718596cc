"""Whether a loop weighs its micro-batches as it was said to, looked at over the steps of a run."""

from dataclasses import replace
from typing import TYPE_CHECKING

from noisescale.guard import Notices
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.size_weighting import SizeWeighting

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms

AVERAGED = (
    "micro-batches, or ranks, of different sizes are averaged with equal weight, though by their sizes was taken for "
    "granted; it is computed so from here on, before tr Σ was too high: say watch(..., "
    "loss=Loss(weighting='equal')), or divide each summed loss by the step's number of examples"
)

WEIGHTED = (
    "weighting='equal' was said, but micro-batches are weighted by their sizes: leave it out, it makes the noise scale "
    "wrong"
)


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
            self._notices.once("weighted", WEIGHTED)
        return Flags(0)

    def corrected(self, norms: "StepNorms") -> "StepNorms":
        """The norms as the loop weighs its small batches, once that is known to be with equal weight."""
        if norms.weighting == "equal" or not norms.contribution_sq_norms or not self.found.is_equal:
            return norms
        num = norms.sizes.num_small_batches
        weighted = [num * contributed for contributed in norms.contribution_sq_norms]
        return replace(norms, weighting="equal", weighted_sq_norms=weighted)
