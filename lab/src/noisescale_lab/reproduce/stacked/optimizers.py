"""Optimizers on flat rows of parameters, each replica with its own learning rate and its own number of updates.

R replicas, P parameters. State lives in the same rows as the parameters, so a checkpoint is a copy of rows.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Plain SGD, or Adam with bias correction.

    Attributes:
        name: Which.
        beta1: Decay of Adam's mean.
        beta2: Decay of Adam's mean of squares.
        epsilon: Added to the root of the mean of squares.

    Source: Adam is algorithm 1 of Kingma & Ba 2015, arXiv:1412.6980.
    """

    name: Literal["sgd", "adam"]
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8

    @property
    def num_states(self) -> int:
        """Rows of state beside the parameters."""
        return 0 if self.name == "sgd" else 2

    def update(self, gradient: Tensor, states: Tensor, learning_rate: Tensor, num_updates: Tensor) -> Tensor:
        """What to add to the parameters, [R, P]; changes the states in place.

        Args:
            gradient: [R, P].
            states: [num_states, R, P].
            learning_rate: [R, 1].
            num_updates: Updates before this one, [R, 1].
        """
        if self.name == "sgd":
            return gradient.mul(learning_rate).neg_()
        mean, mean_square = states[0], states[1]
        mean.lerp_(gradient, 1 - self.beta1)
        mean_square.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        number = num_updates + 1
        first, second = (1 - torch.exp(number * math.log(beta)) for beta in (self.beta1, self.beta2))
        denominator = mean_square.div(second).sqrt_().add_(self.epsilon)
        return mean.div(first).div_(denominator).mul_(learning_rate).neg_()


SGD = Optimizer("sgd")
ADAM = Optimizer("adam")
