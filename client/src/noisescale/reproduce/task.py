"""What a task is: data, a model, an optimizer and a target."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from noisescale.reproduce.stacked.losses import Loss
from noisescale.reproduce.stacked.model import StackedModel
from noisescale.reproduce.stacked.optimizers import Optimizer


@dataclass(frozen=True, slots=True)
class Task:
    """A training task.

    Attributes:
        name: Its name.
        unit: What its examples are.
        network: The model.
        loss: Per example; training minimises the mean.
        optimizer: What trains it.
        sample: From random keys [R, B] to inputs and targets, drawn with replacement.
        evaluation: Fixed inputs and targets, with a leading axis of 1.
        targets: Evaluation losses to reach, from easy to hard.
    """

    name: str
    unit: str
    network: StackedModel
    loss: Loss
    optimizer: Optimizer
    sample: Callable[[Tensor], tuple[Tensor, Tensor]]
    evaluation: tuple[Tensor, Tensor]
    targets: tuple[float, ...]
