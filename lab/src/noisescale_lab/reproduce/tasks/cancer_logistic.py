"""Own task: logistic regression on the Wisconsin breast-cancer data, SGD."""

import torch
from sklearn.datasets import load_breast_cancer

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks.finite import evaluation, sampler, standardised


def task() -> Task:
    """569 patients, 30 standardised measures, 2 classes."""
    cancer = load_breast_cancer()
    inputs = standardised(torch.tensor(cancer.data, dtype=torch.float32))
    targets = torch.tensor(cancer.target)
    return Task(
        name="cancer_logistic",
        unit="examples",
        network=Network((Dense(30, 2),)),
        loss=softmax_cross_entropy,
        optimizer=SGD,
        sample=sampler(inputs, targets),
        evaluation=evaluation(inputs, targets),
        targets=(0.12, 0.08, 0.055),
    )
