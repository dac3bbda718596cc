"""A network with one hidden layer on digits, SGD."""

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler


def task(name: str = "digits_mlp", width: int = 64) -> Task:
    """64-64-10, ReLU.

    Args:
        name: The task's name.
        width: Of the hidden layer.
    """
    return Task(
        name=name,
        unit="examples",
        network=Network((Dense(64, width, "relu"), Dense(width, 10))),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(*digits.load()),
        evaluation=evaluation(*digits.load()),
        targets=(0.5, 0.2, 0.1),
    )


def narrow() -> Task:
    """A quarter of the width, for the comparison of sizes."""
    return task("digits_mlp_16", 16)


def wide() -> Task:
    """Four times the width, for the comparison of sizes."""
    return task("digits_mlp_256", 256)
