"""An autoencoder of digits, Adam."""

from noisescale_lab.reproduce.stacked.losses import scaled_squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import ADAM
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler


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
