"""Measured noise scales of noisy quadratics against exact ones: nothing is fitted, and nothing is estimated twice.

Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.8 and 2.9.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale.config import Config
from noisescale_lab.reproduce.claim.noise_over_run import exact_average, run_average, windows_of
from noisescale_lab.reproduce.claim.watched_run import Terms, terms_of, watch_run
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.tasks.quadratics import QUADRATICS, Quadratic, task
from noisescale_lab.reproduce.trainer import Array, Replicas, advance

BATCH = 64
STEPS = 60
SEEDS = range(12)


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
