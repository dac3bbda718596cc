"""What a demo task is: data to sample from, a model, a loss, and the words the dashboard shows."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the demo.

    Attributes:
        name: Shown as the run's task.
        family: Kind of task, for comparisons.
        example: What is sampled independently.
        unit: What the dashboard counts in, plural.
        units_per_example: Units in one example.
        make_model: Seeded by the caller through `torch.manual_seed`.
        make_optimizer: From a model and a learning rate.
        sample: Examples drawn with replacement: (number of examples, generator) → inputs, targets.
        loss: Mean loss of a model over a batch.
        evaluate: Loss on held-out or whole data.
    """

    name: str
    family: str
    example: str
    unit: str
    units_per_example: int
    make_model: Callable[[], nn.Module]
    make_optimizer: Callable[[nn.Module, float], torch.optim.Optimizer]
    sample: Callable[[int, torch.Generator], Batch]
    loss: Callable[[nn.Module, Batch], Tensor]
    evaluate: Callable[[nn.Module], float]
