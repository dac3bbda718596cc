"""What the trainer asks of a stacked model."""

from typing import Protocol

from torch import Tensor

from noisescale_lab.reproduce.stacked.network import Gradient


class StackedModel(Protocol):
    """R replicas of a model, each with one flat row of P parameters."""

    @property
    def num_parameters(self) -> int:
        """P."""
        ...

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]; equal seeds start equal."""
        ...

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """What `backward` needs and, last, the outputs; inputs may have 1 in place of R."""
        ...

    def backward(
        self,
        parameters: Tensor,
        symbols: Tensor,
        values: list[Tensor],
        derivatives: Tensor,
        *,
        wants_norms: bool = True,
    ) -> Gradient:
        """Mean gradient and, where wanted, per-example squared norms, from the derivatives of the outputs."""
        ...
