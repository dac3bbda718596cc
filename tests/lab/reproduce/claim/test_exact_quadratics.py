import math

import pytest
import torch

from noisescale_lab.reproduce.claim import exact_quadratics
from noisescale_lab.reproduce.claim.exact_quadratics import QUADRATICS, task
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.trainer import Replicas, train


@pytest.mark.parametrize("problem", QUADRATICS, ids=lambda problem: problem.name)
def test_examples_have_the_gradient_and_the_covariance_that_are_called_exact(problem) -> None:
    replicas = Replicas.new(task(problem), [0])
    gradient = problem.curvature * replicas.parameters[0]

    record = train(task(problem), RandomStream(), replicas, seeds=[0], learning_rate=[0.0], batch=2048, steps=1)

    trace = float(problem.variance.sum())
    assert record.trace_cov[0, 0] == pytest.approx(trace, rel=5 * math.sqrt(2 / 2048 / 8))
    spread = math.sqrt(4 * float(problem.variance @ gradient.square()) / 2048)
    assert record.grad_sq_norm[0, 0] == pytest.approx(float(gradient.square().sum()), abs=5 * spread)


@pytest.mark.slow
@pytest.mark.thorough
def test_measured_noise_scales_of_an_isotropic_quadratic_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_quadratics, "QUADRATICS", QUADRATICS[:1])
    monkeypatch.setattr(exact_quadratics, "SEEDS", range(4))

    (found,) = exact_quadratics.check_quadratics()

    assert found.num_holding >= 0.8 * found.num_bounded > 0
    assert found.measured == pytest.approx(found.exact, rel=0.25)
    assert found.exact_hessian == pytest.approx(found.exact, rel=0.25)


def test_a_quadratic_starts_at_known_weights() -> None:
    weights = exact_quadratics._weights(QUADRATICS[1], [0, 1])

    expected = task(QUADRATICS[1]).network.initial([0, 1])
    assert torch.allclose(torch.tensor(weights[0]).float(), expected)
