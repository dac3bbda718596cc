"""Tasks on scikit-learn's two sample photographs in grey, standardised together."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.nn.functional import relu

from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, MOMENTUM, SGD
from noisescale_lab.reproduce.stacked.random_stream import normals, pick
from noisescale_lab.reproduce.task import Task

REACH = 3
"""Rows above, and columns to either side, that a pixel is foretold from."""

EVALUATION_SIZE = 1500

SIDE = 6

NOISY_SIDE, CHANNELS, KERNEL = 8, 8, 3
NOISE = 0.5


@cache
def load() -> Tensor:
    """Grey values with mean 0 and standard deviation 1, [photographs, rows, columns]."""
    images = load_sample_images().images  # type: ignore[no-untyped-call]  # scikit-learn ships no types
    grey = torch.tensor(np.stack([image.mean(2) for image in images]), dtype=torch.float32)
    return (grey - grey.mean()) / grey.std()


# The next pixel of a photograph from its causal neighbours, SGD.


def next_pixel() -> Task:
    """24 neighbours in a window of 4 rows and 7 columns, 24-32-1, tanh."""
    grey = load()
    num_columns = grey.shape[2]
    places = torch.arange(grey.numel()).view_as(grey)[:, REACH:, REACH:-REACH].flatten()
    above = [-row * num_columns + column for row in range(1, REACH + 1) for column in range(-REACH, REACH + 1)]
    neighbours = torch.tensor(above + [-column for column in range(1, REACH + 1)])
    values = grey.flatten()

    def at(centre: Tensor) -> tuple[Tensor, Tensor]:
        return values[centre[..., None] + neighbours], values[centre][..., None]

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return at(places[pick(drawn, len(places))])

    fixed = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))[:EVALUATION_SIZE]
    return Task(
        name="img_nextpixel",
        unit="pixels",
        network=Network((Dense(len(neighbours), 32, "tanh"), Dense(32, 1))),
        loss=squared_error,
        optimizer=SGD,
        sample=sample,
        evaluation=at(places[fixed][None]),
        targets=(0.12, 0.10, 0.09),
    )


# Own task: an autoencoder of photograph patches, Adam.


def patches_autoencoder() -> Task:
    """Patches of 6 × 6 grey pixels, 36-24-6-24-36, tanh with a linear code."""
    grey = load()
    num_columns = grey.shape[2]
    corners = torch.arange(grey.numel()).view_as(grey)[:, : 1 - SIDE, : 1 - SIDE].flatten()
    places = torch.tensor([row * num_columns + column for row in range(SIDE) for column in range(SIDE)])
    values = grey.flatten()

    def at(corner: Tensor) -> tuple[Tensor, Tensor]:
        patch = values[corner[..., None] + places]
        return patch, patch

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return at(corners[pick(drawn, len(corners))])

    fixed = torch.randperm(len(corners), generator=torch.Generator().manual_seed(0))[:1000]
    side = SIDE * SIDE
    return Task(
        name="patches_ae_adam",
        unit="patches",
        network=Network((Dense(side, 24, "tanh"), Dense(24, 6), Dense(6, 24, "tanh"), Dense(24, side))),
        loss=squared_error,
        optimizer=ADAM,
        sample=sample,
        evaluation=at(corners[fixed][None]),
        targets=(0.12, 0.06, 0.04),
    )


# A long run: noise taken off patches of photographs by convolutions, SGD with momentum.


def clean(weights: dict[str, Tensor], noisy: Tensor) -> Tensor:
    """Three convolutions of 3 × 3, ReLU between them, without borders: [R, B, 8 · 8] to [R, B, 2 · 2].

    Args:
        weights: By name, each with a leading axis R.
        noisy: Pixels.
    """
    replicas, batch = noisy.shape[:2]
    values = noisy.view(replicas, batch, NOISY_SIDE, NOISY_SIDE, 1)
    for number in range(3):
        side, channels = values.shape[3] - KERNEL + 1, values.shape[4]
        # the neighbours of every place side by side, so that a convolution is one product
        seen = values.unfold(2, KERNEL, 1).unfold(3, KERNEL, 1)
        rows = seen.reshape(replicas, batch * side * side, channels * KERNEL * KERNEL)
        values = rows @ weights[f"kernel_{number}"] + weights[f"bias_{number}"][:, None]
        values = (relu(values) if number < 2 else values).view(replicas, batch, side, side, -1)
    return values.flatten(2)


def denoiser() -> Task:
    """Three convolutions with 8 channels, from patches with noise of half the photographs' own spread."""
    grey = load()
    num_columns = grey.shape[2]
    corners = torch.arange(grey.numel()).view_as(grey)[:, : 1 - NOISY_SIDE, : 1 - NOISY_SIDE].flatten()
    reach = range(NOISY_SIDE)
    places = torch.tensor([row * num_columns + column for row in reach for column in reach])
    inner = range(KERNEL, NOISY_SIDE - KERNEL)
    kept = torch.tensor([row * NOISY_SIDE + column for row in inner for column in inner])
    values = grey.flatten()

    def with_noise(corner: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        patch = values[corner[..., None] + places]
        return patch + NOISE * noise, patch[..., kept]

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        return with_noise(corners[pick(drawn, len(corners))], normals(drawn, len(places)))

    generator = torch.Generator().manual_seed(0)
    fixed = torch.randperm(len(corners), generator=generator)[:1000]
    of_inputs = (KERNEL * KERNEL, CHANNELS * KERNEL * KERNEL, CHANNELS * KERNEL * KERNEL)
    weights = {}
    for number, (size, width) in enumerate(zip(of_inputs, (CHANNELS, CHANNELS, 1), strict=True)):
        weights[f"kernel_{number}"] = Weight((size, width), (2 / size) ** 0.5)
        weights[f"bias_{number}"] = Weight((width,), 0.0)
    return Task(
        name="denoiser_momentum",
        unit="patches",
        network=FunctionalModel(weights, clean),
        loss=squared_error,
        optimizer=MOMENTUM,
        sample=sample,
        evaluation=with_noise(corners[fixed][None], torch.randn(1, 1000, len(places), generator=generator)),
        targets=(0.08, 0.06, 0.05),
        small_batches=4,
        warm_up=100,
    )
