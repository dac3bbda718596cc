"""A network with one hidden layer on digits, SGD."""

from noisescale.reproduce.stacked.losses import softmax_cross_entropy
from noisescale.reproduce.stacked.network import Dense, Network
from noisescale.reproduce.stacked.optimizers import SGD
from noisescale.reproduce.task import Task
from noisescale.reproduce.tasks import digits
from noisescale.reproduce.tasks.finite import evaluation, sampler


def task() -> Task:
    """64-64-10, ReLU."""
    return Task(
        name="digits_mlp",
        unit="examples",
        network=Network((Dense(64, 64, "relu"), Dense(64, 10))),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(*digits.load()),
        evaluation=evaluation(*digits.load()),
        targets=(0.5, 0.2, 0.1),
    )
