"""Noisy quadratics: the gradient, its covariance and the curvature are known, so every noise scale is exact.

The loss of an example with noise ε is ½ θᵀHθ + εᵀθ, its gradient Hθ + ε; H is diagonal, ε normal, its variances known.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import normals
from noisescale_lab.reproduce.task import Task

SIZE = 64


@dataclass(frozen=True, slots=True)
class Quadratic:
    """One problem.

    Attributes:
        name: Its name.
        curvature: Diagonal of H, [64].
        variance: Diagonal of Σ, [64].
        learning_rate: It is trained with.
    """

    name: str
    curvature: Tensor
    variance: Tensor
    learning_rate: float


INVERSE_RANK = 1 / torch.arange(1, SIZE + 1).float()

QUADRATICS = (
    Quadratic("quadratic_isotropic", torch.ones(SIZE), torch.full((SIZE,), 4.0), 0.03),
    Quadratic("quadratic_noise_like_curvature", INVERSE_RANK, INVERSE_RANK, 0.2),
    Quadratic("quadratic_white_noise", INVERSE_RANK, torch.full((SIZE,), 0.1), 0.2),
)


def task(problem: Quadratic) -> Task:
    """The problem as a task, whose evaluation loss is the exact one."""

    def function(weights: dict[str, Tensor], noise: Tensor) -> Tensor:
        theta = weights["theta"][:, None]
        return (problem.curvature * theta.square() / 2 + noise * theta).sum(-1, keepdim=True)

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        noise = normals(drawn, SIZE) * problem.variance.sqrt()
        return noise, noise[..., :0]

    nothing = torch.zeros(1, 1, SIZE)
    return Task(
        name=problem.name,
        unit="examples",
        network=FunctionalModel({"theta": Weight((SIZE,), 1.0)}, function),
        loss=lambda outputs, _: (outputs[..., 0], torch.ones_like(outputs)),
        optimizer=SGD,
        sample=sample,
        evaluation=(nothing, nothing[..., :0]),
        targets=(0.0,),
    )
