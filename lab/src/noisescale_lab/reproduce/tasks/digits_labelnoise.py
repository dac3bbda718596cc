"""The digits network with most labels wrong, SGD: a gradient that is nearly all noise."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import fraction, pick
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation

NUM_CLASSES = 10


def task(name: str, wrong: float, targets: tuple[float, ...]) -> Task:
    """Each sampled label is replaced by a uniform random one with a given probability.

    The evaluation uses the expected cross-entropy over labels.

    Args:
        name: The task's name.
        wrong: Probability of replacement.
        targets: Evaluation losses to reach.
    """
    pixels, labels = digits.load()

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        index = pick(drawn, len(pixels))
        lot = fraction(drawn)
        random_label = (lot / wrong * NUM_CLASSES).long()
        return pixels[index], torch.where(lot < wrong, random_label, labels[index])

    distributions = torch.nn.functional.one_hot(labels, NUM_CLASSES) * (1 - wrong) + wrong / NUM_CLASSES
    return Task(
        name=name,
        unit="examples",
        network=Network((Dense(64, 64, "relu"), Dense(64, 10))),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sample,
        evaluation=evaluation(pixels, distributions),
        targets=targets,
    )


def seven_in_ten() -> Task:
    """Seven labels in ten are random."""
    return task("digits_labelnoise", 0.7, (2.15, 2.11, 2.09))


def nine_in_ten() -> Task:
    """Nine labels in ten are random."""
    return task("digits_labelnoise9", 0.9, (2.29, 2.283, 2.279))
