"""Handwritten digits: an MLP 64-64-10 on scikit-learn's 1,797 images, trained with SGD."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from demo.tasks import Batch, Task

HIDDEN = 64
CLASSES = 10


def load() -> Batch:
    """All images as float32 [1797, 64] in 0…1, and their labels [1797]."""
    digits = load_digits()
    return torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)


def make_model() -> nn.Module:
    """The MLP."""
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy in nats."""
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


def make_task() -> Task:
    """The task, with its data loaded."""
    images, labels = load()

    def sample(num_examples: int, generator: torch.Generator) -> Batch:
        index = torch.randint(len(labels), (num_examples,), generator=generator)
        return images[index], labels[index]

    def evaluate(model: nn.Module) -> float:
        with torch.no_grad():
            return float(loss(model, (images, labels)))

    return Task(
        name="digits",
        family="image classification",
        example="image",
        unit="images",
        units_per_example=1,
        make_model=make_model,
        make_optimizer=lambda model, lr: torch.optim.SGD(model.parameters(), lr=lr),
        sample=sample,
        loss=loss,
        evaluate=evaluate,
    )
