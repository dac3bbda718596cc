"""Tasks on scikit-learn's small tables: iris, breast cancer, diabetes."""

import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy, squared_error
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.task import Task, evaluation, sampler, standardised


def iris_softmax() -> Task:
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


# Own task: logistic regression on the Wisconsin breast-cancer data, SGD.


def cancer_logistic() -> Task:
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


# Linear regression on diabetes, SGD: its targets are met in very few steps, which the theory does not allow for.


def diabetes_linreg() -> Task:
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
