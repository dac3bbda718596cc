"""Own task: a deeper network on digits, Adam."""

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler


def task() -> Task:
    """64-48-48-10, ReLU."""
    return Task(
        name="digits_deep_adam",
        unit="examples",
        network=Network((Dense(64, 48, "relu"), Dense(48, 48, "relu"), Dense(48, 10))),
        loss=softmax_cross_entropy,
        optimizer=ADAM,
        sample=sampler(*digits.load()),
        evaluation=evaluation(*digits.load()),
        targets=(0.5, 0.2, 0.1),
    )
