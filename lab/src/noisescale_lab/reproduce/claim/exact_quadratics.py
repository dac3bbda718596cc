"""Measured noise scales of noisy quadratics against exact ones: nothing is fitted, and nothing is estimated twice.

Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.8 and 2.9.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from noisescale.config import Config
from noisescale_lab.reproduce.claim.noise_over_run import exact_average, run_average, windows_of
from noisescale_lab.reproduce.claim.watched_run import Terms, terms_of, watch_run
from noisescale_lab.reproduce.stacked.functional import FunctionalModel, Weight
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, normals
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Array, Replicas, advance

SIZE = 64

BATCH = 64
STEPS = 60
SEEDS = range(12)


# Noisy quadratics: the gradient, its covariance and the curvature are known, so every noise scale is exact.
#
# The loss of an example with noise ε is ½ θᵀHθ + εᵀθ, its gradient Hθ + ε; H is diagonal, ε normal, its variances
# known.


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


@dataclass(frozen=True, slots=True)
class QuadraticCheck:
    """One quadratic; noise scales are in examples, averaged over the steps of a run.

    Attributes:
        task: Its name.
        num_windows: Along the run, all seeds together.
        num_bounded: Those with a bounded interval.
        num_holding: Those of them whose interval holds the exact value.
        measured: Of the hooks, kind `simple`.
        exact: tr Σ / |G|² at the weights that were passed, of the same windows.
        exact_hessian: tr(HΣ) / GᵀHG, to which B_crit belongs; the same as `exact` where H is isotropic.
    """

    task: str
    num_windows: int
    num_bounded: int
    num_holding: int
    measured: float | None
    exact: float | None
    exact_hessian: float


def check_quadratics() -> tuple[QuadraticCheck, ...]:
    """One row a quadratic."""
    return tuple(_check(problem) for problem in QUADRATICS)


def _check(problem: Quadratic) -> QuadraticCheck:
    nowhere = Config(mode="disabled")
    runs = [
        watch_run(
            task(problem),
            batch=BATCH,
            learning_rate=problem.learning_rate,
            seed=seed,
            steps=STEPS,
            evaluated_at=(),
            config=nowhere,
        )
        for seed in SEEDS
    ]
    curvature, variance = problem.curvature.double().numpy(), problem.variance.double().numpy()
    gradients = curvature * _weights(problem, SEEDS)
    exact = Terms(np.full(gradients.shape[:2], variance.sum()), (gradients**2).sum(-1))
    windows = windows_of(terms_of(runs), exact)
    bounded = [one for one in windows if one.value is not None]
    holding = [
        one for one in bounded if one.exact is not None and (one.low or 0) <= one.exact <= (one.high or math.inf)
    ]
    return QuadraticCheck(
        task=problem.name,
        num_windows=len(windows),
        num_bounded=len(bounded),
        num_holding=len(holding),
        measured=run_average(windows),
        exact=exact_average(windows),
        exact_hessian=float((curvature @ variance / (gradients**2 @ curvature)).mean()),
    )


def _weights(problem: Quadratic, seeds: Sequence[int]) -> Array:
    """Those that the runs have passed before each step, [steps, seeds, 64]."""
    seeds = list(seeds)
    stream, replicas = RandomStream(), Replicas.new(task(problem), seeds)
    passed = []
    for _ in range(STEPS):
        passed.append(replicas.parameters.double().numpy().copy())
        advance(
            task(problem),
            stream,
            replicas,
            seeds=seeds,
            learning_rate=[problem.learning_rate] * len(seeds),
            batch=BATCH,
            steps=1,
        )
    return np.stack(passed)
