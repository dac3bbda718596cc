"""What a task is: data, a model, an optimizer and a target."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import Loss
from noisescale_lab.reproduce.stacked.network import StackedModel
from noisescale_lab.reproduce.stacked.optimizers import Optimizer
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.sweep.trial import Goal

EVALUATION_SIZE = 600


@dataclass(frozen=True, slots=True)
class Carried:
    """What an example hands on to the one in its place of the next step, as an environment does.

    Attributes:
        begin: From keys [R, B] to what stands before the first step, [R, B, ...].
        after: From outputs to what comes behind the inputs of the next step.
    """

    begin: Callable[[Tensor], Tensor]
    after: Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Task:
    """A training task.

    Attributes:
        name: Its name.
        unit: What people count in.
        network: The model.
        loss: Per example; training minimises the mean.
        optimizer: What trains it.
        sample: From random keys [R, B] to inputs and targets, drawn with replacement.
        evaluation: Fixed inputs and targets, with a leading axis of 1.
        targets: Values of the metric to reach, from easy to hard.
        units_per_example: Units that make one example.
        goal: Whether the metric falls to its targets or rises to them.
        metric: From weights [R, P] to the metric [R]; None: the mean loss of the evaluation examples.
        metric_name: What runs and sweeps on a server call it.
        carried: None where steps are drawn independently.
        small_batches: Into how many parts a batch falls whose gradients tell the noise; None: its single examples.
        warm_up: Updates over which the learning rate rises to its peak along a line; 0 where it starts there.
    """

    name: str
    unit: str
    network: StackedModel
    loss: Loss
    optimizer: Optimizer
    sample: Callable[[Tensor], tuple[Tensor, Tensor]]
    evaluation: tuple[Tensor, Tensor]
    targets: tuple[float, ...]
    units_per_example: int = 1
    goal: Goal = "min"
    metric: Callable[[Tensor], Tensor] | None = None
    metric_name: str = "eval_loss"
    carried: Carried | None = None
    small_batches: int | None = None
    warm_up: int = 0

    def warmed_up(self, num_updates: Tensor) -> Tensor:
        """Share of the peak learning rate at the update that follows so many others."""
        return ((num_updates + 1) / max(1, self.warm_up)).clamp(max=1)


# Tasks on a data set held in memory: sampled with replacement, evaluated on fixed examples of the whole set.


def standardised(values: Tensor) -> Tensor:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    deviation = values.std(0, unbiased=False)
    return (values - values.mean(0)) / torch.where(deviation > 0, deviation, torch.ones_like(deviation))


def sampler(inputs: Tensor, targets: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """From keys to examples of a data set."""

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        index = pick(drawn, len(inputs))
        return inputs[index], targets[index]

    return sample


def evaluation(inputs: Tensor, targets: Tensor, size: int = EVALUATION_SIZE) -> tuple[Tensor, Tensor]:
    """Fixed examples of a data set, all if there are fewer."""
    index = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))[:size]
    return inputs[index][None], targets[index][None]
