"""Makes each example of a backward a small batch: per-example norms in the order of the watched parameters."""

# P parameters

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from noisescale.capture.duty_cycle import DutyCycle
from noisescale.capture.per_example.coverage import Layers
from noisescale.capture.per_example.norms import PerExampleNorms
from noisescale.capture.sums.row_sums import spread
from noisescale.capture.sums.small_batches import SmallBatchSize
from noisescale_core.errors import ConfigError

MIN_COVERED = 0.9
"""Share of a model's elements from which its per-example norms may stand for it unasked."""


class ExampleSource:
    """Per-example norms of the parameters that have them.

    Args:
        model: Its input has the examples in the first dimension.
        parameters: Trainable ones by name.
        layers: All, or the normalisations only.
        on_fault: Told about our own faults inside hooks.
        min_covered: Share of the elements of all parameters that must stay measured.
        fused_norm_layers: Replace the backward of the normalisations by one that gives the norms, too.
        duty: What is told how long hooks take while it times steps.

    Attributes:
        parameters: Those measured, by name.
        message: What is left out, why, and what to do about it; None where nothing is.
        dropped: Indices of those that turned out to be used elsewhere, too; they are left out since.
        is_refused: Less than `min_covered` is left of it.

    Raises:
        ConfigError: If not one parameter can be measured.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, Tensor],
        layers: Layers,
        *,
        on_fault: Callable[[Exception], None],
        min_covered: float = 0.0,
        fused_norm_layers: bool = False,
        duty: Callable[[], DutyCycle | None] = lambda: None,
    ) -> None:
        self._norms = PerExampleNorms(
            model,
            parameters,
            on_fault=on_fault,
            layers=layers,
            fused_norm_layers=fused_norm_layers,
            joins_forwards=True,
            duty=duty,
        )
        if not self._norms.covered:
            self._norms.remove()
            raise ConfigError(self._norms.message or "per-example norms need a layer with parameters")
        self.parameters = {name: parameters[name] for name in self._norms.covered}
        self.message = self._norms.message
        self.dropped: list[int] = []
        self.is_refused = False
        self._num_elements = sum(p.numel() for p in parameters.values())
        self._min_covered = min_covered
        self._index_of = {name: index for index, name in enumerate(self.parameters)}

    @property
    def reason(self) -> str | None:
        """Why the last backward could not be taken apart; None where it could."""
        return self._norms.reason

    def pause(self, is_paused: bool) -> None:
        """Leave backward passes out from here on, or no longer."""
        self._norms.pause(is_paused)

    def hold(self, is_holding: bool) -> None:
        """Add backward passes up from here on, or no longer."""
        self._norms.hold(is_holding)

    def clear(self) -> None:
        """Forget what was captured."""
        self._norms.clear()

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """The per-example norms have hooks of their own."""

    def take(self) -> list[tuple[Tensor, SmallBatchSize]]:
        """Σ |s_i|² of each parameter over the examples of the last small batch, [P], and their number, as one entry.

        Examples of forwards of the same size are one small batch, pair by pair.

        Empty where there was no backward, or it could not be taken apart.
        """
        taken = self._norms.take()
        covered = self._norms.covered
        if len(covered) + len(self.dropped) < len(self._index_of):
            self.dropped = [index for name, index in self._index_of.items() if name not in covered]
            self.message = self._norms.message
            self._look_at_share()
        if taken is None:
            return []
        sq_norm_N, num_small = taken
        sq_norm_P = spread([([self._index_of[name] for name in covered], sq_norm_N)], len(self._index_of))
        return [(sq_norm_P, SmallBatchSize(self._norms.num_taken, num_small=num_small))]

    @property
    def covered_share(self) -> float:
        """Elements that are measured ÷ all."""
        return sum(self.parameters[name].numel() for name in self._norms.covered) / self._num_elements

    def _look_at_share(self) -> None:
        """Give up where too little is left to stand for the model."""
        share = self.covered_share
        self.is_refused = share < self._min_covered
        if self.is_refused:
            self.message = (
                f"per-example norms can be had of {100 * share:.0f} % of the model's elements only, so they do not "
                f"stand for it any more; small_batches='per_example' measures that part. {self.message}"
            )

    def remove(self) -> None:
        """Take every hook off."""
        self._norms.remove()
