"""The next character from the last eight, by a small network."""

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Embedding, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, SGD, Optimizer
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.text import characters

CONTEXT, WIDTH, HIDDEN = 8, 8, 64


def task(name: str, optimizer: Optimizer) -> Task:
    """Eight-dimensional embeddings of eight characters, 64 ReLU."""
    size = characters.NUM_CHARACTERS
    return Task(
        name=name,
        unit="tokens",
        network=Network((Dense(CONTEXT * WIDTH, HIDDEN, "relu"), Dense(HIDDEN, size)), Embedding(size, WIDTH, CONTEXT)),
        loss=softmax_cross_entropy,
        optimizer=optimizer,
        sample=characters.sampler(CONTEXT),
        evaluation=characters.evaluation(CONTEXT),
        targets=(2.8, 2.5, 2.35),
    )


def with_sgd() -> Task:
    """By SGD."""
    return task("charlm_mlp", SGD)


def with_adam() -> Task:
    """By Adam."""
    return task("charlm_mlp_adam", ADAM)
