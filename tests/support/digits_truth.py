"""The exact tr Σ and |G|² of the digits MLP over its whole data set, example by example."""

import torch
from torch import Tensor, nn

from demo import digits

IMAGES_NI, LABELS_N = digits.load()  # N images, I pixels


def exact_terms(model: nn.Module, images: Tensor = IMAGES_NI, labels: Tensor = LABELS_N) -> tuple[float, float]:
    """tr Σ and |G|² of a data set at the model's present weights, in fp64.

    The gradient of a linear layer for one example is the outer product of its output gradient and its input, so its
    squared norm is the product of two squared norms; `test_the_closed_form_is_the_autograd_gradient` checks it.
    """
    (delta_out, hidden), (delta_hidden, pixels) = layer_factors(model, images, labels)
    n = len(pixels)
    per_example = sq(delta_out) * (sq(hidden) + 1) + sq(delta_hidden) * (sq(pixels) + 1)
    mean_gradient = (delta_out.T @ hidden / n, delta_out.mean(0), delta_hidden.T @ pixels / n, delta_hidden.mean(0))
    grad_sq_norm = float(sum((part**2).sum() for part in mean_gradient))
    return float(per_example.mean()) - grad_sq_norm, grad_sq_norm


def layer_factors(
    model: nn.Module, images: Tensor, labels: Tensor
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """(output gradient, input) of each layer for every example, last layer first."""
    first_weight, first_bias, last_weight, last_bias = (p.detach().double() for p in model.parameters())
    pixels = images.double()
    before = pixels @ first_weight.T + first_bias
    hidden = before.clamp(min=0)
    delta_out = torch.softmax(hidden @ last_weight.T + last_bias, 1)
    delta_out[torch.arange(len(labels)), labels] -= 1
    return (delta_out, hidden), ((delta_out @ last_weight) * (before > 0), pixels)


def sq(rows: Tensor) -> Tensor:
    """Squared norm of each row."""
    return (rows**2).sum(1)
