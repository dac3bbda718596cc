"""What the targets call exact is exact: against one backward per example and against long simulations."""

import numpy as np
import pytest
import torch
from benchmarks.truth import characters, digits_mlp
from benchmarks.truth.population import Population, rotate
from benchmarks.truth.power_law import GAUSSIAN, HEAVY_TAILED, PowerLaw
from benchmarks.truth.step import sq_norm
from torch.nn import functional

from demo import digits
from digits_truth import exact_terms

POINT = digits_mlp.Point(batch_size=256, learning_rate=0.5, steps=20)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("variances", [GAUSSIAN, HEAVY_TAILED], ids=["gaussian", "heavy_tailed"])
def test_squared_norms_of_a_power_law_have_their_expectations(variances: tuple[tuple[float, float], ...]) -> None:
    target = PowerLaw("B 50", 50, 64, 40, variances, dimension=64)

    steps = list(target.steps(200, seed=1))

    for count, examples in ((1, 64), (2, 32), (8, 8), (32, 2), (64, 1)):
        measured = np.concatenate(
            [
                step.sq_norm
                if count == 1
                else step.per_example_sq_norm
                if count == 64
                else step.sq_norms[count].mean(1)
                for step in steps
            ]
        )
        error = measured.std() / np.sqrt(len(measured))
        assert abs(measured.mean() - (1 + 50 / examples)) < 5 * error, count


@pytest.mark.slow
@pytest.mark.thorough
def test_the_fourth_moment_of_a_heavy_tail_is_that_of_its_examples() -> None:
    """Var |g|² of examples drawn one by one, against the variance of means of 64 from class means and chi-squares."""
    target = PowerLaw("B 50", 50, 64, 40, HEAVY_TAILED, dimension=64)
    generator = np.random.default_rng(2)
    spectrum = 50 / np.arange(1, 65) / (1 / np.arange(1, 65)).sum()
    scale = np.where(generator.random(150_016) < 0.01, 50.5, 0.5)
    examples = generator.standard_normal((150_016, 64)) * np.sqrt(scale[:, None] * spectrum) + 1 / 8

    measured = np.concatenate([step.per_example_sq_norm for step in target.steps(100, seed=3)])

    one_by_one = (examples**2).sum(1).reshape(-1, 64).mean(1)
    relative_error = np.sqrt(
        sum(np.mean((x - x.mean()) ** 4) / (x.var() ** 2 * len(x)) for x in (one_by_one, measured))
    )
    assert abs(measured.var() / one_by_one.var() - 1) < 5 * relative_error


def test_a_moving_power_law_follows_the_gradient_that_was_measured() -> None:
    target = PowerLaw("B 50", 50, 64, 2, learning_rate=0.5, dimension=64)

    first, second = target.steps(3, seed=1)

    moved = 1 / 8 - 0.5 / np.arange(1, 65) * first.gradient
    assert second.grad_sq_norm == pytest.approx(sq_norm(moved), rel=1e-5)


def test_terms_of_a_population_are_unbiased_each_by_itself() -> None:
    rows = np.random.default_rng(0).standard_normal((40, 12)).astype(np.float32) ** 3 + 0.5
    target = Population("random", rows, batch_size=64, num_steps=20)
    trace_cov, grad_sq_norm = target.terms()

    steps = list(target.steps(300, seed=1))

    for small, examples in (("groups", 8), ("examples", 1)):
        m = np.array([s.sq_norms[8].mean(1) if small == "groups" else s.per_example_sq_norm for s in steps]).ravel()
        error = m.std() / np.sqrt(len(m))
        assert abs(m.mean() - (grad_sq_norm + trace_cov / examples)) < 5 * error


def test_rotated_gradients_keep_every_inner_product() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 200))

    assert rotate(rows) @ rotate(rows).T == pytest.approx(rows @ rows.T, rel=1e-4, abs=1e-4)


def test_gradients_of_every_digit_are_those_of_one_backward_each() -> None:
    model = POINT.train()
    images, labels = digits.load()

    gradients, tensors = digits_mlp.per_example_gradients(POINT)

    for index in (0, 700, 1796):
        loss = functional.cross_entropy(model(images[index : index + 1]), labels[index : index + 1])
        expected = torch.autograd.grad(loss, list(model.parameters()))
        for coordinates, parameter in zip(tensors, expected, strict=True):
            # The copies hold their matrices transposed.
            brute_force = (parameter.T if parameter.dim() == 2 else parameter).flatten().numpy()
            assert gradients[index, coordinates] == pytest.approx(brute_force, abs=1e-6)


def test_digits_training_takes_the_steps_of_sgd_and_knows_the_truth_at_each() -> None:
    target = digits_mlp.DigitsTraining("digits", POINT, learning_rate=0.1, num_steps=2)
    model = POINT.train()

    first, second = target.steps(1, seed=4)

    assert (first.trace_cov[0], first.grad_sq_norm[0]) == pytest.approx(exact_terms(model), rel=1e-5)
    with torch.no_grad():
        parts = torch.as_tensor(first.gradient[0]).split([parameter.numel() for parameter in model.parameters()])
        for parameter, part in zip(model.parameters(), parts, strict=True):
            parameter -= 0.1 * (part.view_as(parameter.T).T if parameter.dim() == 2 else part)
    assert (second.trace_cov[0], second.grad_sq_norm[0]) == pytest.approx(exact_terms(model), rel=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("small", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["small", "demo"])
def test_gradients_of_every_sequence_are_those_of_one_backward_each(small: bool) -> None:
    model = characters.trained(0, small=small)
    inputs, targets = characters.data_set(3)

    gradients = characters.per_example_gradients(model, (inputs, targets))

    for index in range(3):
        loss = functional.cross_entropy(model(inputs[index : index + 1]).flatten(0, 1), targets[index])
        expected = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))])
        assert gradients[index] == pytest.approx(expected.numpy(), abs=1e-6)


@pytest.mark.slow
@pytest.mark.thorough
def test_training_of_the_transformer_knows_the_truth_at_each_step() -> None:
    target = characters.CharacterTraining("characters", 0, learning_rate=0.1, num_steps=2, num_examples=32)

    first, second = target.steps(1, seed=4)

    assert second.grad_sq_norm[0] != first.grad_sq_norm[0]
    gradients = characters.per_example_gradients(characters.trained(0, small=True), characters.data_set(32))
    trace_cov, grad_sq_norm = Population("characters", gradients, 64, 1).terms()
    assert (first.trace_cov[0], first.grad_sq_norm[0]) == pytest.approx((trace_cov, grad_sq_norm), rel=1e-5)
