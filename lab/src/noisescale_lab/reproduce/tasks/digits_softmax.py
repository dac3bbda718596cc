"""Softmax regression on digits, SGD."""

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler


def task() -> Task:
    """64 pixels to 10 classes without a hidden layer."""
    return Task(
        name="digits_softmax",
        unit="examples",
        network=Network((Dense(64, 10),)),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(*digits.load()),
        evaluation=evaluation(*digits.load()),
        targets=(0.5, 0.3, 0.2),
    )
