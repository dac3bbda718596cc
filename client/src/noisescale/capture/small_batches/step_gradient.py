"""The gradient of a step, as it is in `p.grad`: what of it is the step's own, and whether it was changed."""

from collections.abc import Callable, Sequence

from torch import Tensor

from noisescale.capture.small_batches.ignored_gradients import IgnoredGradients
from noisescale.capture.small_batches.main_gradients import MainGradients
from noisescale.capture.small_batches.witness import Witness
from noisescale.capture.sources.gradient_source import GradientSource
from noisescale.capture.sums.row_sums import RowSums
from noisescale.kernels.squared_norms import condense, values_that_count

LocalGradients = Callable[[], list[Tensor | None]]


class StepGradient:
    """The mean gradient of a step, once all its small batches are there.

    Args:
        parameters: In the order of their indices.
        rows: Sum squared norms up.
        local_gradients: Gives the part of each `p.grad` that this process holds; None: all of it.
        source: Takes each backward apart, and may leave parameters out; None: each is one small batch.
        main: Adds gradients up in place of autograd; None: autograd does.

    Attributes:
        witness: Tells whether it was changed since the last backward.
        ignored: What `ignore()` kept out of the small batches.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rows: RowSums,
        *,
        local_gradients: LocalGradients | None,
        source: GradientSource | None,
        main: MainGradients | None,
    ) -> None:
        self._rows = rows
        self._local_gradients = local_gradients or (lambda: [p.grad for p in parameters])
        self._source = source
        self._main = main
        self.witness = Witness(parameters)
        self.ignored = IgnoredGradients()

    def start_step(self) -> None:
        """Forget what was seen: the next backward belongs to a new step."""
        self.witness.forget()
        self.ignored = IgnoredGradients()

    def look_closer(self, undone_scale: Tensor | None, *, adds_up: bool) -> None:
        """Forget what is known of it where it may not be true any more.

        Args:
            undone_scale: Of a loss scaler, where it has been divided by it since.
            adds_up: It is still the sum of the small batches.
        """
        if undone_scale is not None:
            self.witness.forget_values()
        if self._main is not None and (undone_scale is not None or not adds_up):
            self._main.forget_big()

    @property
    def has_ignored(self) -> bool:
        """Whether `p.grad` holds something that `ignore()` kept out of the small batches."""
        return bool(self.ignored.sums)

    def own(self) -> list[Tensor | None]:
        """`p.grad` of each parameter, without what `ignore()` kept out."""
        gradients = self.ignored.taken_off(self._local_gradients())
        if self._source is not None:
            for index in self._source.dropped:
                gradients[index] = None
        return gradients

    def row(self) -> Tensor | None:
        """Its squared norms as a row; None where there is no gradient."""
        known = None if self._main is None or self.has_ignored else self._main.big_row()
        if known is not None:
            return known
        gradients = self.own()
        indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
        if not indices:
            return None
        condensed = [condense(values_that_count(gradient)) for gradient in gradients if gradient is not None]
        return self._rows.row([self._rows.part(indices, condensed)])
