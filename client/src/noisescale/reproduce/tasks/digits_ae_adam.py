"""An autoencoder of digits, Adam."""

from noisescale.reproduce.stacked.losses import scaled_squared_error
from noisescale.reproduce.stacked.network import Dense, Network
from noisescale.reproduce.stacked.optimizers import ADAM
from noisescale.reproduce.task import Task
from noisescale.reproduce.tasks import digits
from noisescale.reproduce.tasks.finite import evaluation, sampler


def task() -> Task:
    """64-32-16-32-64, tanh with a linear code, 4 × mean squared error."""
    pixels, _ = digits.load()
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
