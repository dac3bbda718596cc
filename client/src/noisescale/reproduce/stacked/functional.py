"""Stacked models of any kind: a function of one example, and autograd mapped over replicas and examples.

R replicas, B examples, P parameters of one replica. Slower than a backward pass by hand; for models where that is long.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from noisescale.reproduce.stacked.network import Gradient

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
    """A model given by what it computes for one example.

    Attributes:
        weights: Its tensors by name; a replica's row holds them in this order.
        function: From tensors by name and the inputs of one example to its outputs.
    """

    weights: Mapping[str, Weight]
    function: Callable[[dict[str, Tensor], Tensor], Tensor]

    @property
    def num_parameters(self) -> int:
        """P."""
        return sum(weight.size for weight in self.weights.values())

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]; equal seeds start equal."""
        return torch.stack([self._initial_row(seed) for seed in seeds])

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """The inputs and the outputs; inputs may have 1 in place of R."""
        inputs = inputs.expand(len(parameters), *inputs.shape[1:])
        over_examples = torch.func.vmap(self._outputs, in_dims=(None, 0))
        with torch.no_grad():
            return [inputs, torch.func.vmap(over_examples)(parameters, inputs)]

    def backward(self, parameters: Tensor, symbols: Tensor, values: list[Tensor], derivatives: Tensor) -> Gradient:
        """Mean gradient and per-example squared norms.

        Args:
            parameters: [R, P].
            symbols: The inputs that `forward` was given.
            values: What `forward` returned.
            derivatives: Of each example's loss with respect to the outputs, [R, B, ...].
        """
        chunk = max(1, LARGEST_GRADIENTS // (derivatives.shape[1] * self.num_parameters))
        rows = zip(*(torch.split(stack, chunk) for stack in (parameters, values[0], derivatives)), strict=True)
        parts = [self._gradients(*some) for some in rows]
        return Gradient(torch.cat([mean for mean, _ in parts]), torch.cat([sq_norm for _, sq_norm in parts]))

    def _gradients(self, parameters: Tensor, inputs: Tensor, derivatives: Tensor) -> tuple[Tensor, Tensor]:
        """Mean gradients [R, P] and squared norms [R, B] of some replicas."""
        over_examples = torch.func.vmap(self._gradient, in_dims=(None, 0, 0))
        found = torch.func.vmap(over_examples)(parameters, inputs, derivatives)
        return found.mean(1), found.square().sum(2)

    def _gradient(self, row: Tensor, one_input: Tensor, derivative: Tensor) -> Tensor:
        """Of one example, [P]."""
        pull_back = torch.func.vjp(partial(self._outputs, one_input=one_input), row)[1]
        gradient: Tensor = pull_back(derivative)[0]
        return gradient

    def _outputs(self, row: Tensor, one_input: Tensor) -> Tensor:
        sizes = [weight.size for weight in self.weights.values()]
        parts = torch.split(row, sizes)
        tensors = {
            name: part.reshape(weight.shape) for (name, weight), part in zip(self.weights.items(), parts, strict=True)
        }
        return self.function(tensors, one_input)

    def _initial_row(self, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.cat(
            [torch.randn(weight.size, generator=generator) * weight.deviation for weight in self.weights.values()]
        )
