"""The obviously right per-example norms: one backward for each example, squared and summed in fp64."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from noisescale.capture.per_example.norms import PerExampleNorms

Loss = Callable[[Tensor, Tensor], Tensor]


def raise_fault(fault: Exception) -> None:
    raise fault


def make_norms(model: nn.Module, **settings: object) -> PerExampleNorms:
    """Norms of all trainable parameters of a model; a fault fails the test."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return PerExampleNorms(model, parameters, on_fault=raise_fault, **settings)


def brute_force(
    model: nn.Module, inputs: Tensor, targets: Tensor, loss_of_sum: Loss, names: list[str], group: int = 1
) -> Tensor:
    """|s_i|² by example (or by group of adjacent examples) and parameter, [b, P] fp64.

    Args:
        model: Called with one example at a time.
        inputs: [B, ...].
        targets: [B, ...].
        loss_of_sum: The loss that the batch has, as a sum over its examples: scaled by the batch, not by the one.
        names: Parameters wanted.
        group: Examples that count as one.
    """
    parameters = [model.get_parameter(name) for name in names]
    rows = []
    for start in range(0, len(inputs), group):
        total = [torch.zeros(p.shape, dtype=torch.float64) for p in parameters]
        for i in range(start, start + group):
            loss = loss_of_sum(model(inputs[i : i + 1]), targets[i : i + 1])
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            total = [t if g is None else t + g.to_dense().double() for t, g in zip(total, gradients, strict=True)]
        rows.append(torch.stack([t.square().sum() for t in total]))
    return torch.stack(rows)


def brute_force_of_layer(layer: nn.Module, activation: Tensor, grad_output: Tensor) -> Tensor:
    """|s_i|² from one layer's own input and output gradient, in fp64, whatever precision they have: [B, P]."""
    layer = copy.deepcopy(layer).double()
    activation = activation.double() if activation.is_floating_point() else activation
    rows = []
    for i in range(len(activation)):
        layer.zero_grad()
        layer(activation[i : i + 1]).backward(grad_output[i : i + 1].double())
        rows.append(torch.stack([p.grad.square().sum() for p in layer.parameters()]))
    return torch.stack(rows)


def assert_equal(found: Tensor | None, truth: Tensor, tolerance: float) -> None:
    """Each example's norms agree to the tolerance; parameters whose gradient is rounding only may differ by as much."""
    assert found is not None
    assert found.shape == truth.shape
    assert found.dtype == torch.float64
    scale = truth.sum(1, keepdim=True)
    wrong = (found - truth).abs() > tolerance * (truth + tolerance * scale)
    assert not wrong.any(), f"relative error {((found - truth).abs() / (truth + tolerance * scale)).max():.2e}"
