"""Where small batches come from, and what takes a backward apart into several that autograd adds up."""

from typing import Protocol

from torch import Tensor

from noisescale.capture.sums.small_batches import SmallBatchSize

SENTENCES = {
    "micro_batches": "from its micro-batches",
    "ranks": "from each rank's own gradient",
    "ranks_and_micro_batches": "from the micro-batches of all ranks",
    "per_example": "from the gradient of each example",
    "split": "from the parts that each forward is cut into, which changes the rounding of the training",
    "layer_norm_proxy": "from each example's gradient in the normalisation layers, a proxy for the model's",
}


class GradientSource(Protocol):
    """Small batches inside one backward; `Accumulation` asks for them at its end.

    Attributes:
        dropped: Indices of parameters that are not measured any more.
        reason: Why the last backward could not be taken apart, as a clause; None where it could.
        message: What the measurement leaves out or changes, in words; None where nothing.
        is_refused: It cannot be done with this model.
    """

    dropped: list[int]
    message: str | None
    is_refused: bool

    @property
    def reason(self) -> str | None:
        """As above."""

    def pause(self, is_paused: bool) -> None:
        """Leave what comes out from here on, or no longer."""

    def hold(self, is_holding: bool) -> None:
        """Add up what backward passes through the same forward bring from here on, or no longer."""

    def clear(self) -> None:
        """Forget what was captured."""

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """Look at a parameter's whole gradient of the running backward."""

    def take(self) -> list[tuple[Tensor, SmallBatchSize]]:
        """Σ |s|² of each parameter, [P] fp64, and the size of each entry since the last call; then forget."""

    def remove(self) -> None:
        """Leave nothing on the model."""
