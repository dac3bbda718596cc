"""Whether examples that are small batches depend on each other, looked at over the steps of a run."""

from typing import TYPE_CHECKING

from noisescale.guard import Notices
from noisescale.notices.explanations import WEIGHTED
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.neighbouring_steps import NeighbouringSteps

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms


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
