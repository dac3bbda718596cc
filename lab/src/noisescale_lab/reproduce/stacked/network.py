"""Stacked networks of dense layers, with forward, backward and per-example norms written by hand.

R replicas, B examples, I inputs, O outputs of a layer, P parameters of one replica. A replica's parameters are one flat
row, so that copying, averaging and updating whole models are single operations.

The gradient of a dense layer for one example is the outer product of its input and of the derivative of its loss with
respect to the layer's output; its squared norm is the product of two squared norms (Goodfellow 2015, arXiv:1510.01799).
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

Activation = Literal["linear", "relu", "tanh"]


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense layer: activation(x W + b).

    Attributes:
        num_inputs: I.
        num_outputs: O.
        activation: What follows the product.
    """

    num_inputs: int
    num_outputs: int
    activation: Activation = "linear"

    @property
    def num_parameters(self) -> int:
        """(I + 1) O."""
        return (self.num_inputs + 1) * self.num_outputs


@dataclass(frozen=True, slots=True)
class Embedding:
    """A table whose rows, one for each symbol of the context, are laid side by side.

    Attributes:
        num_symbols: V, rows of the table.
        width: Columns of the table.
        context: T, symbols of one example.
    """

    num_symbols: int
    width: int
    context: int

    @property
    def num_parameters(self) -> int:
        """V times the width."""
        return self.num_symbols * self.width


@dataclass(frozen=True, slots=True)
class Gradient:
    """What one backward pass yields.

    Attributes:
        mean: Mean gradient of each replica's batch, [R, P].
        example_sq_norm: |g_i|² of each example, [R, B]; zeros where they were not wanted.
        inputs: Derivative of each example's loss with respect to its inputs, [R, B, I]; None unless asked for.
    """

    mean: Tensor
    example_sq_norm: Tensor
    inputs: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A chain of dense layers, after an embedding where inputs are symbols.

    Attributes:
        layers: From input to output.
        embedding: Where inputs are symbols [R, B, T]; otherwise they are numbers [R, B, I].
        starts_at_zero: Whether all weights start at zero; otherwise at N(0, 2 / I) before a ReLU, else N(0, 1 / I).
    """

    layers: tuple[Dense, ...]
    embedding: Embedding | None = None
    starts_at_zero: bool = False

    @property
    def num_parameters(self) -> int:
        """P."""
        table = self.embedding.num_parameters if self.embedding else 0
        return table + sum(layer.num_parameters for layer in self.layers)

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]; equal seeds start equal."""
        return torch.stack([self._initial_row(seed) for seed in seeds])

    def _initial_row(self, seed: int) -> Tensor:
        if self.starts_at_zero:
            return torch.zeros(self.num_parameters)
        generator = torch.Generator().manual_seed(seed)
        parts = []
        if self.embedding:
            parts.append(torch.randn(self.embedding.num_parameters, generator=generator))
        for layer in self.layers:
            deviation = math.sqrt((2 if layer.activation == "relu" else 1) / layer.num_inputs)
            weights = torch.randn(layer.num_inputs * layer.num_outputs, generator=generator)
            parts += [weights * deviation, torch.zeros(layer.num_outputs)]
        return torch.cat(parts)

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """Inputs of each layer and, last, the outputs of the network; inputs may have 1 in place of R."""
        offset = 0
        if self.embedding:
            inputs = self._embed(parameters, inputs)
            offset = self.embedding.num_parameters
        values = [inputs]
        for layer in self.layers:
            weights, bias = _dense_views(parameters, layer, offset)
            offset += layer.num_parameters
            before = _product(values[-1], weights).add_(bias)
            values.append(_activate(before, layer.activation))
        return values

    def backward(
        self,
        parameters: Tensor,
        symbols: Tensor,
        values: list[Tensor],
        derivatives: Tensor,
        *,
        wants_norms: bool = True,
        num_positions: int = 1,
        wants_inputs: bool = False,
    ) -> Gradient:
        """Mean gradient and per-example squared norms.

        Args:
            parameters: [R, P].
            symbols: The inputs that `forward` was given; used by an embedding only.
            values: What `forward` returned.
            derivatives: Of each example's loss with respect to the outputs, [R, B, O].
            wants_norms: Whether to go to the cost of squared norms.
            num_positions: Rows of an example, such as the observations of a fragment; B counts rows then.
            wants_inputs: Whether to go on to the inputs, which must be numbers.
        """
        batch = derivatives.shape[1] // num_positions
        parts: list[Tensor] = []
        sq_norm = derivatives.new_zeros(len(derivatives), batch)
        offset = self.num_parameters
        for layer, inputs, outputs in zip(
            reversed(self.layers), reversed(values[:-1]), reversed(values[1:]), strict=True
        ):
            offset -= layer.num_parameters
            derivatives = _through_activation(derivatives, outputs, layer.activation)
            if wants_norms:
                sq_norm += _dense_sq_norm(inputs, derivatives, num_positions)
            parts = [torch.bmm(inputs.mT, derivatives).flatten(1), derivatives.sum(1), *parts]
            if offset > 0 or wants_inputs:
                derivatives = torch.bmm(derivatives, _dense_views(parameters, layer, offset)[0].mT)
        if self.embedding:
            slots = derivatives.view(*derivatives.shape[:2], self.embedding.context, self.embedding.width)
            parts = [self._table_gradient(symbols, slots), *parts]
            if wants_norms:
                sq_norm += _table_sq_norm(symbols, slots)
        mean = torch.cat(parts, dim=1).div_(batch)
        return Gradient(mean, sq_norm, derivatives if wants_inputs else None)

    def _embed(self, parameters: Tensor, symbols: Tensor) -> Tensor:
        assert self.embedding is not None
        replicas, size = parameters.shape[0], self.embedding.num_symbols
        table = parameters[:, : self.embedding.num_parameters].reshape(replicas * size, self.embedding.width)
        rows = symbols + torch.arange(replicas)[:, None, None] * size
        return table[rows].flatten(2)

    def _table_gradient(self, symbols: Tensor, slots: Tensor) -> Tensor:
        """Sum over the batch of the table's gradient [R, V · width], from derivatives of its slots [R, B, T, width]."""
        assert self.embedding is not None
        size, width = self.embedding.num_symbols, self.embedding.width
        replicas = len(slots)
        rows = symbols + torch.arange(replicas)[:, None, None] * size
        table = slots.new_zeros(replicas * size, width)
        table.index_add_(0, rows.flatten(), slots.reshape(-1, width))
        return table.view(replicas, -1)


def _dense_sq_norm(inputs: Tensor, derivatives: Tensor, num_positions: int) -> Tensor:
    """Squared norm of a dense layer's gradient example by example, [R, B].

    Gradients of an example's rows add up; hence the products of pairs.
    """
    if num_positions == 1:
        return (_sq(inputs) + 1) * _sq(derivatives)
    inputs, derivatives = (rows.reshape(len(rows), -1, num_positions, rows.shape[-1]) for rows in (inputs, derivatives))
    return ((inputs @ inputs.mT + 1) * (derivatives @ derivatives.mT)).sum((-1, -2))


def _table_sq_norm(symbols: Tensor, slots: Tensor) -> Tensor:
    """Squared norm of the table's gradient example by example, [R, B].

    A symbol that occurs twice in one context has one gradient, the sum of both; hence the products of pairs.
    """
    same = symbols[..., :, None] == symbols[..., None, :]
    return ((slots @ slots.mT) * same).sum((-1, -2))


def _dense_views(parameters: Tensor, layer: Dense, offset: int) -> tuple[Tensor, Tensor]:
    middle = offset + layer.num_inputs * layer.num_outputs
    weights = parameters[:, offset:middle].view(-1, layer.num_inputs, layer.num_outputs)
    return weights, parameters[:, None, middle : middle + layer.num_outputs]


def _product(inputs: Tensor, weights: Tensor) -> Tensor:
    """Inputs [R or 1, B, I] times weights [R, I, O]."""
    if weights.shape[-1] == 1 and inputs.shape[0] == weights.shape[0]:
        return (inputs * weights.mT).sum(-1, keepdim=True)  # a third of the time of a product with one column
    # the product of a broadcast input is a view per replica: matmul neither copies nor repeats it
    return torch.matmul(inputs, weights)


def _activate(before: Tensor, activation: Activation) -> Tensor:
    match activation:
        case "relu":
            return before.relu_()
        case "tanh":
            # the same function, but for its last digit, in a quarter of the time of tanh_
            return before.mul_(2).sigmoid_().mul_(2).sub_(1)
        case "linear":
            return before


def _through_activation(derivatives: Tensor, outputs: Tensor, activation: Activation) -> Tensor:
    match activation:
        case "relu":
            found: Tensor = torch.ops.aten.threshold_backward(
                derivatives, outputs, 0
            )  # an eighth of the time of a mask
            return found
        case "tanh":
            return derivatives * (1 - outputs * outputs)
        case "linear":
            return derivatives


def _sq(rows: Tensor) -> Tensor:
    return (rows * rows).sum(-1)


# What the trainer asks of a stacked model.


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
