"""Softmax regression on iris, SGD."""

import torch
from sklearn.datasets import load_iris

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler, standardised


def task() -> Task:
    """150 flowers, 4 standardised measures, 3 species."""
    iris = load_iris()
    inputs = standardised(torch.tensor(iris.data, dtype=torch.float32))
    targets = torch.tensor(iris.target)
    return Task(
        name="iris_softmax",
        unit="examples",
        network=Network((Dense(4, 3),)),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(inputs, targets),
        evaluation=evaluation(inputs, targets),
        targets=(0.25, 0.15, 0.12),
    )
