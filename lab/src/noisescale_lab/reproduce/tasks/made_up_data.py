"""Own tasks on data that are drawn, not read."""

import torch

from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task, evaluation, sampler

NUM_EXAMPLES = 20_000
NUM_INPUTS = 16
NOISE = 0.3

NUM_FEATURES = 64
TARGET_NOISE = 0.5


def teacher_student() -> Task:
    """Teacher 16-4-1, student 16-48-1; answers have variance 1 plus 0.09 of noise."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(NUM_EXAMPLES, NUM_INPUTS, generator=generator)
    hidden = torch.tanh(inputs @ torch.randn(NUM_INPUTS, 4, generator=generator) * 0.5)
    answers = hidden @ torch.randn(4, 1, generator=generator)
    answers = answers / answers.std() + NOISE * torch.randn(NUM_EXAMPLES, 1, generator=generator)
    return Task(
        name="teacher_student",
        unit="examples",
        network=Network((Dense(NUM_INPUTS, 48, "relu"), Dense(48, 1))),
        loss=squared_error,
        optimizer=SGD,
        sample=sampler(inputs, answers),
        evaluation=evaluation(inputs, answers),
        targets=(0.3, 0.25, 0.2),
    )


# Own task: linear regression on features whose variances fall as a power law, SGD.


def powerlaw(name: str, num_features: int, power: float, targets: tuple[float, ...]) -> Task:
    """Feature i has variance 1 / iᵖ; answers have variance 1 plus 0.25 of noise.

    Args:
        name: The task's.
        num_features: How many.
        power: p.
        targets: Evaluation losses to reach.
    """
    generator = torch.Generator().manual_seed(2)
    scale = torch.arange(1, num_features + 1).float().pow(-power / 2)
    inputs = torch.randn(NUM_EXAMPLES, num_features, generator=generator) * scale
    answers = inputs @ torch.randn(num_features, 1, generator=generator)
    answers = answers / answers.std() + TARGET_NOISE * torch.randn(NUM_EXAMPLES, 1, generator=generator)
    return Task(
        name=name,
        unit="examples",
        network=Network((Dense(num_features, 1),), starts_at_zero=True),
        loss=squared_error,
        optimizer=SGD,
        sample=sampler(inputs, answers),
        evaluation=evaluation(inputs, answers),
        targets=targets,
    )


def powerlaw_regression() -> Task:
    """64 features, of variance 1 / i."""
    return powerlaw("powerlaw_regression", NUM_FEATURES, 1.0, (0.5, 0.35, 0.3))


def long_powerlaw() -> Task:
    """A noisy quadratic whose run is long: 256 features of variance i^-1.5."""
    return powerlaw("powerlaw_long", 256, 1.5, (0.35, 0.3, 0.28))
