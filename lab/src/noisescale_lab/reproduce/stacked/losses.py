"""Losses of stacked networks: each example's loss, and its derivative with respect to the outputs.

R replicas, B examples, O outputs. The loss of a batch is the mean over its examples, which the network divides by.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Loss: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(outputs [R, B, O], targets) to (losses [R, B], derivatives [R, B, O])."""

WIDE = 64
"""Outputs from which on `torch.log_softmax` on a CPU is the quicker one; at ten it takes four times as long."""


def softmax_cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy in nats, against labels [R, B] or distributions [R, B, O]; R may be 1 in the targets."""
    log_probabilities, probabilities = log_softmax_and_softmax(outputs)
    if targets.is_floating_point():
        losses = -(targets * log_probabilities).sum(-1)
        return losses, probabilities - targets
    labels = targets.expand(outputs.shape[:-1]).unsqueeze(-1)
    losses = -log_probabilities.gather(-1, labels).squeeze(-1)
    derivatives = probabilities.detach().clone() if probabilities.requires_grad else probabilities
    derivatives.scatter_add_(-1, labels, derivatives.new_full((), -1.0).expand(labels.shape))
    return losses, derivatives


def log_softmax_and_softmax(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of probabilities, and probabilities."""
    if outputs.shape[-1] >= WIDE:
        log_probabilities = torch.log_softmax(outputs, -1)
        return log_probabilities, log_probabilities.exp()
    shifted = outputs - outputs.amax(-1, keepdim=True)
    powers = shifted.exp()
    total = powers.sum(-1, keepdim=True)
    return shifted - total.log(), powers / total


def sequence_cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over a sequence's T positions of the cross-entropy; outputs [R, B, T, O], labels [R, B, T]."""
    replicas, batch, length, _ = outputs.shape
    labels = targets.expand(replicas, batch, length).flatten(1)
    losses, derivatives = softmax_cross_entropy(outputs.flatten(1, 2), labels)
    return losses.view(replicas, batch, length).mean(2), derivatives.view_as(outputs) / length


def squared_error(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over the outputs of (output - target)²; targets [R, B, O]."""
    difference = outputs - targets
    return difference.square().mean(-1), difference * (2 / outputs.shape[-1])


def scaled_squared_error(scale: float) -> Loss:
    """`squared_error` times a constant, for tasks that are defined so."""

    def loss(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        losses, derivatives = squared_error(outputs, targets)
        return losses * scale, derivatives * scale

    return loss
