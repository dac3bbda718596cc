"""Own task: an autoencoder of photograph patches, Adam."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM
from noisescale_lab.reproduce.stacked.random_stream import pick
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import photographs

SIDE = 6


def task() -> Task:
    """Patches of 6 × 6 grey pixels, 36-24-6-24-36, tanh with a linear code."""
    grey = photographs.load()
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
