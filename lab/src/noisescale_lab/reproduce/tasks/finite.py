"""Tasks on a data set held in memory: sampled with replacement, evaluated on fixed examples of the whole set."""

from collections.abc import Callable

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.random_stream import pick

EVALUATION_SIZE = 600


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
