"""Optimizers on flat rows of parameters, each replica with its own learning rate and its own number of updates.

R replicas, P parameters. State lives in the same rows as the parameters, so a checkpoint is a copy of rows.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

ENOUGH_UPDATES = 5
"""From which on Adam's mean of squares, without the present gradient, stands for what it divides by."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Plain SGD, SGD with momentum, or Adam with bias correction; any of them with decoupled weight decay.

    Attributes:
        name: Which.
        beta1: Decay of Adam's mean, or the momentum of SGD.
        beta2: Decay of Adam's mean of squares.
        epsilon: Added to the root of the mean of squares.
        weight_decay: Times the learning rate, the share of the parameters that a step takes away.

    Source: Adam is algorithm 1 of Kingma & Ba 2015, arXiv:1412.6980; its decoupled decay Loshchilov & Hutter 2019,
        arXiv:1711.05101.
    """

    name: Literal["sgd", "momentum", "adam"]
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    @property
    def class_name(self) -> str:
        """As PyTorch calls it."""
        return "SGD" if self.name != "adam" else "AdamW" if self.weight_decay else "Adam"

    @property
    def momentum(self) -> float:
        """Share of an update that the next one repeats."""
        return 0.0 if self.name == "sgd" else self.beta1

    @property
    def num_states(self) -> int:
        """Rows of state beside the parameters."""
        return {"sgd": 0, "momentum": 1, "adam": 2}[self.name]

    def update(self, gradient: Tensor, states: Tensor, learning_rate: Tensor, num_updates: Tensor) -> Tensor:
        """What to add to the parameters, without weight decay, [R, P]; changes the states in place.

        Args:
            gradient: [R, P].
            states: [num_states, R, P].
            learning_rate: [R, 1].
            num_updates: Updates before this one, [R, 1].
        """
        if self.name == "sgd":
            return gradient.mul(learning_rate).neg_()
        if self.name == "momentum":
            return states[0].mul_(self.beta1).add_(gradient).mul(learning_rate).neg_()
        mean, mean_square = states[0], states[1]
        mean.lerp_(gradient, 1 - self.beta1)
        mean_square.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        number = num_updates + 1
        first, second = (1 - torch.exp(number * math.log(beta)) for beta in (self.beta1, self.beta2))
        denominator = mean_square.div(second).sqrt_().add_(self.epsilon)
        return mean.div(first).div_(denominator).mul_(learning_rate).neg_()

    def promise(self, parts: Tensor, states: Tensor, learning_rate: Tensor, num_updates: Tensor) -> Tensor:
        """The fall of the loss that the next update promises to first order, -u · G, without the batch's noise, [R].

        What an update repeats of earlier ones owes nothing to the noise of this batch; of the present gradient the
        mean product of two different parts stands for |G|². Adam divides by what it held before this gradient, so that
        numerator and divisor do not share its noise.

        Args:
            parts: Mean gradients of K ≥ 2 equal parts of the batch, [R, K, P].
            states: Before the update, [num_states, R, P].
            learning_rate: [R, 1].
            num_updates: Before this one, [R, 1].

        Returns:
            Not a number for Adam's first updates, whose divisor is not known without the present gradient.
        """
        count, mean = parts.shape[1], parts.mean(1)
        weight = learning_rate.clone()
        if self.name == "adam":
            made = num_updates.clamp(min=1)
            divisor = (states[1] / (1 - torch.exp(made * math.log(self.beta2)))).sqrt_().add_(self.epsilon)
            weight = learning_rate * (1 - self.beta1) / (1 - torch.exp((num_updates + 1) * math.log(self.beta1)))
            weight = torch.where(num_updates < ENOUGH_UPDATES, torch.nan, weight) / divisor
            # a coordinate that has had no gradient yet would be divided by ε alone; the SDK leaves it out, too
            weight = torch.where(states[1] > 0, weight, 0.0 * weight)
        big = (weight * mean.square()).sum(1)
        small = (weight[:, None] * parts.square()).sum((1, 2)) / count
        fresh = (count * big - small) / (count - 1)
        if self.name == "sgd":
            return fresh
        repeated = self.beta1 / (1 - self.beta1) if self.name == "adam" else self.beta1
        return fresh + repeated * (weight * states[0] * mean).sum(1)


SGD = Optimizer("sgd")
MOMENTUM = Optimizer("momentum")
ADAM = Optimizer("adam")
ADAMW = Optimizer("adam", weight_decay=0.1)
