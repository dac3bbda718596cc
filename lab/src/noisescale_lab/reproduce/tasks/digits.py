"""Tasks on scikit-learn's 1797 handwritten digits of 8 × 8 pixels."""

from functools import cache

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import scaled_squared_error, softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, SGD
from noisescale_lab.reproduce.stacked.random_stream import fraction, normals, pick
from noisescale_lab.reproduce.stacked.variational import VariationalAutoencoder, negative_evidence_bound
from noisescale_lab.reproduce.task import Task, evaluation, sampler

NUM_CLASSES = 10

CODE_SIZE = 4


@cache
def load() -> tuple[Tensor, Tensor]:
    """Pixels in [0, 1], [N, 64], and labels, [N]."""
    digits = load_digits()
    return torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)


# A network with one hidden layer on digits, SGD.


def mlp(name: str = "digits_mlp", width: int = 64) -> Task:
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
        sample=sampler(*load()),
        evaluation=evaluation(*load()),
        targets=(0.5, 0.2, 0.1),
    )


def narrow() -> Task:
    """A quarter of the width, for the comparison of sizes."""
    return mlp("digits_mlp_16", 16)


def wide() -> Task:
    """Four times the width, for the comparison of sizes."""
    return mlp("digits_mlp_256", 256)


# Softmax regression on digits, SGD.


def softmax() -> Task:
    """64 pixels to 10 classes without a hidden layer."""
    return Task(
        name="digits_softmax",
        unit="examples",
        network=Network((Dense(64, 10),)),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(*load()),
        evaluation=evaluation(*load()),
        targets=(0.5, 0.3, 0.2),
    )


# The digits network with most labels wrong, SGD: a gradient that is nearly all noise.


def label_noise(name: str, wrong: float, targets: tuple[float, ...]) -> Task:
    """Each sampled label is replaced by a uniform random one with a given probability.

    The evaluation uses the expected cross-entropy over labels.

    Args:
        name: The task's name.
        wrong: Probability of replacement.
        targets: Evaluation losses to reach.
    """
    pixels, labels = load()

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
    return label_noise("digits_labelnoise", 0.7, (2.15, 2.11, 2.09))


def nine_in_ten() -> Task:
    """Nine labels in ten are random."""
    return label_noise("digits_labelnoise9", 0.9, (2.29, 2.283, 2.279))


# An autoencoder of digits, Adam.


def autoencoder() -> Task:
    """64-32-16-32-64, tanh with a linear code, 4 × mean squared error."""
    pixels, _ = load()
    return Task(
        name="digits_ae_adam",
        unit="examples",
        network=Network((Dense(64, 32, "tanh"), Dense(32, 16), Dense(16, 32, "tanh"), Dense(32, 64))),
        loss=scaled_squared_error(4),
        optimizer=ADAM,
        sample=sampler(pixels, pixels),
        evaluation=evaluation(pixels, pixels),
        targets=(0.2, 0.12, 0.09),
    )


# A variational autoencoder of digits, Adam.


def variational_autoencoder() -> Task:
    """64-48-(4+4) and 4-48-64, tanh; likelihood summed over pixels plus divergence; fixed noise to evaluate."""
    pixels, _ = load()

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        chosen = pixels[pick(drawn, len(pixels))]
        return torch.cat([chosen, normals(drawn, CODE_SIZE)], -1), chosen

    noise = torch.randn(len(pixels), CODE_SIZE, generator=torch.Generator().manual_seed(3))
    return Task(
        name="digits_vae_adam",
        unit="examples",
        network=VariationalAutoencoder(
            encoder=Network((Dense(64, 48, "tanh"), Dense(48, 2 * CODE_SIZE))),
            decoder=Network((Dense(CODE_SIZE, 48, "tanh"), Dense(48, 64))),
        ),
        loss=negative_evidence_bound(CODE_SIZE),
        optimizer=ADAM,
        sample=sample,
        evaluation=evaluation(torch.cat([pixels, noise], 1), pixels),
        targets=(30.0, 28.0, 26.5),
    )


# Own task: a deeper network on digits, Adam.


def deep() -> Task:
    """64-48-48-10, ReLU."""
    return Task(
        name="digits_deep_adam",
        unit="examples",
        network=Network((Dense(64, 48, "relu"), Dense(48, 48, "relu"), Dense(48, 10))),
        loss=softmax_cross_entropy,
        optimizer=ADAM,
        sample=sampler(*load()),
        evaluation=evaluation(*load()),
        targets=(0.5, 0.2, 0.1),
    )
