"""Stacked models of any kind: a function of stacked weights, differentiated by autograd.

R replicas, B examples, P parameters of one replica. Slower than a backward pass by hand; for models where that is long.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.network import Gradient

LARGEST_GRADIENTS = 1 << 25
"""Numbers that per-example gradients may fill at once: 128 MiB."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of parameters.

    Attributes:
        shape: Its shape.
        deviation: Standard deviation of its initial values, which are normal.
    """

    shape: tuple[int, ...]
    deviation: float

    @property
    def size(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class FunctionalModel:
    """A model given by what it computes.

    Attributes:
        weights: Its tensors by name; a replica's row holds them in this order.
        function: From tensors by name, each with a leading axis R, and inputs [R, B, ...] to outputs [R, B, ...].
        start: Parameters [P] that all replicas start from, such as a trained model's; None: normal numbers by seed.
    """

    weights: Mapping[str, Weight]
    function: Callable[[dict[str, Tensor], Tensor], Tensor]
    start: Callable[[], Tensor] | None = None

    @property
    def num_parameters(self) -> int:
        """P."""
        return sum(weight.size for weight in self.weights.values())

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]; equal seeds start equal."""
        return torch.stack([self._initial_row(seed) for seed in seeds])

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """The inputs, the weights and the outputs with autograd's graph between them, and the outputs without it.

        Inputs may have 1 in place of R. There is no graph under `torch.no_grad`, and nothing to go back through.
        """
        inputs = inputs.expand(len(parameters), *inputs.shape[1:])
        rows = parameters.detach().requires_grad_()
        outputs = self._outputs(rows, inputs)
        return [inputs, rows, outputs, outputs.detach()]

    def backward(
        self,
        parameters: Tensor,
        symbols: Tensor,
        values: list[Tensor],
        derivatives: Tensor,
        *,
        wants_norms: bool = True,
    ) -> Gradient:
        """Mean gradient and per-example squared norms.

        Args:
            parameters: [R, P].
            symbols: The inputs that `forward` was given.
            values: What `forward` returned.
            derivatives: Of each example's loss with respect to the outputs, [R, B, ...].
            wants_norms: Whether to take every example's gradient for its norm, which takes several times as long.
        """
        batch = derivatives.shape[1]
        if not wants_norms:
            mean = torch.autograd.grad(values[2], values[1], derivatives / batch)[0]
            return Gradient(mean, mean.new_zeros(derivatives.shape[:2]))
        chunk = max(1, LARGEST_GRADIENTS // (batch * self.num_parameters))
        rows = zip(*(torch.split(stack, chunk) for stack in (parameters, values[0], derivatives)), strict=True)
        parts = [self._of_each_example(*some) for some in rows]
        return Gradient(torch.cat([mean for mean, _ in parts]), torch.cat([sq_norm for _, sq_norm in parts]))

    def _of_each_example(self, parameters: Tensor, inputs: Tensor, derivatives: Tensor) -> tuple[Tensor, Tensor]:
        """Mean gradients [R, P] and squared norms [R, B] of some replicas: every example is a replica of its own."""
        replicas, batch = derivatives.shape[:2]
        one, derivative = (stack.flatten(0, 1)[:, None] for stack in (inputs, derivatives))
        rows = parameters.detach().repeat_interleave(batch, 0).requires_grad_()
        found = torch.autograd.grad(self._outputs(rows, one), rows, derivative)[0].view(replicas, batch, -1)
        return found.mean(1), found.square().sum(2)

    def _outputs(self, rows: Tensor, inputs: Tensor) -> Tensor:
        parts = torch.split(rows, [weight.size for weight in self.weights.values()], dim=1)
        tensors = {
            name: part.reshape(-1, *weight.shape)
            for (name, weight), part in zip(self.weights.items(), parts, strict=True)
        }
        return self.function(tensors, inputs)

    def _initial_row(self, seed: int) -> Tensor:
        if self.start is not None:
            return self.start().clone()
        generator = torch.Generator().manual_seed(seed)
        return torch.cat(
            [torch.randn(weight.size, generator=generator) * weight.deviation for weight in self.weights.values()]
        )
