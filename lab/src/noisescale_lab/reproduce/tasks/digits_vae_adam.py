"""A variational autoencoder of digits, Adam."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM
from noisescale_lab.reproduce.stacked.random_stream import normals, pick
from noisescale_lab.reproduce.stacked.variational import VariationalAutoencoder, negative_evidence_bound
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation

CODE_SIZE = 4


def task() -> Task:
    """64-48-(4+4) and 4-48-64, tanh; likelihood summed over pixels plus divergence; fixed noise to evaluate."""
    pixels, _ = digits.load()

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
