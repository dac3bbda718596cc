"""Whether the small batches of a step are different terms of one loss, looked at over the steps of a run."""

from typing import TYPE_CHECKING

from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.order_of_passes import PassOrder

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms


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
