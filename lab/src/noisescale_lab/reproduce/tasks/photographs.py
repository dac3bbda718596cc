"""Tasks on scikit-learn's two sample photographs in grey, standardised together."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM, SGD
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.reproduce.task import Task

REACH = 3
"""Rows above, and columns to either side, that a pixel is foretold from."""

EVALUATION_SIZE = 1500

SIDE = 6


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
