"""The next character from the last one, by a table of logits that starts at zero."""

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Embedding, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, SGD, Optimizer
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.text import characters


def task(name: str, optimizer: Optimizer) -> Task:
    """One-hot character times a matrix; the same as a row of a table."""
    return Task(
        name=name,
        unit="tokens",
        network=Network(
            (), Embedding(characters.NUM_CHARACTERS, characters.NUM_CHARACTERS, context=1), starts_at_zero=True
        ),
        loss=softmax_cross_entropy,
        optimizer=optimizer,
        sample=characters.sampler(1),
        evaluation=characters.evaluation(1),
        targets=(3.0, 2.8, 2.7),
    )


def with_sgd() -> Task:
    """By SGD: limited by curvature, as rare characters learn slowly."""
    return task("char_bigram", SGD)


def with_adam() -> Task:
    """By Adam."""
    return task("char_bigram_adam", ADAM)
