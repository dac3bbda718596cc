"""Linear regression on diabetes, SGD: its targets are met in very few steps, which the theory does not allow for."""

import torch
from sklearn.datasets import load_diabetes

from noisescale_lab.reproduce.stacked.losses import squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler, standardised


def task() -> Task:
    """442 patients, 10 standardised measures, progression after a year, standardised as well."""
    diabetes = load_diabetes()
    inputs = standardised(torch.tensor(diabetes.data, dtype=torch.float32))
    answers = standardised(torch.tensor(diabetes.target, dtype=torch.float32)[:, None])
    return Task(
        name="diabetes_linreg",
        unit="examples",
        network=Network((Dense(10, 1),)),
        loss=squared_error,
        optimizer=SGD,
        sample=sampler(inputs, answers),
        evaluation=evaluation(inputs, answers),
        targets=(0.50, 0.493, 0.49),
    )
