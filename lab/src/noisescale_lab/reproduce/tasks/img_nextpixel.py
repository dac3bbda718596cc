"""The next pixel of a photograph from its causal neighbours, SGD."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import photographs

REACH = 3
"""Rows above, and columns to either side, that a pixel is foretold from."""

EVALUATION_SIZE = 1500


def task() -> Task:
    """24 neighbours in a window of 4 rows and 7 columns, 24-32-1, tanh."""
    grey = photographs.load()
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
