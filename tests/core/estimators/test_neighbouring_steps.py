"""Examples that depend on each other show in the distances of neighbouring steps; gradients that move do not."""

import math

import numpy as np
import pytest

from noisescale_core.estimators.neighbouring_steps import LAGS, NeighbouringSteps, StepDistances

NOISE = 1.0
"""tr Σ / B, as the examples of a step have it."""


def distances(gradients_tp):
    """½ |ḡ_t - ḡ_(t-k)|² of each step and those before it."""
    for step, gradient in enumerate(gradients_tp):
        before = gradients_tp[max(0, step - len(LAGS)) : step][::-1]
        yield StepDistances([0.5 * float(((gradient - other) ** 2).sum()) for other in before], NOISE)


def found_in(gradients_tp):
    """What is found after the last step."""
    steps = NeighbouringSteps()
    for step in distances(gradients_tp):
        steps.add(step)
    return steps.excess


def noise_of(seed, *, share=1.0, steps=200, dimension=20):
    """Gradients around 0 whose noise is a multiple of what their examples say."""
    return np.random.default_rng(seed).standard_normal((steps, dimension)) * math.sqrt(share * NOISE / dimension)


@pytest.mark.parametrize("share", [1.5, 2.0])
def test_examples_that_share_data_are_found_with_their_factor(share):
    assert [found_in(noise_of(seed, share=share)) for seed in range(5)] == pytest.approx([share - 1] * 5, abs=0.3)


@pytest.mark.parametrize("share", [0.4, 0.65])
def test_examples_that_a_loss_compares_are_found_with_their_factor(share):
    assert [found_in(noise_of(seed, share=share)) for seed in range(5)] == pytest.approx([share - 1] * 5, abs=0.15)


@pytest.mark.parametrize("share", [0.85, 1.0, 1.15])
def test_what_independent_examples_explain_is_nothing_to_say(share):
    assert [found_in(noise_of(seed, share=share)) for seed in range(20)] == [None] * 20


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_a_gradient_that_moves_steadily_is_none(speed):
    moved = np.outer(np.arange(200), np.full(20, speed / math.sqrt(20)))

    assert found_in(noise_of(0) + moved) is None


@pytest.mark.parametrize("size", [0.8, 1.5, 3.0])
def test_a_gradient_that_swings_from_step_to_step_is_none(size):
    swing = np.outer((-1.0) ** np.arange(200), np.full(20, size / math.sqrt(20)))

    assert found_in(noise_of(0) + swing) is None


def test_the_same_examples_at_each_step_say_nothing():
    assert found_in(noise_of(0, share=0.001)) is None


def test_a_step_that_is_not_finite_ends_the_row():
    steps, rows = NeighbouringSteps(), list(distances(noise_of(0, share=2.0)))

    for number, step in enumerate(rows):
        broken = number % 4 == 3
        steps.add(StepDistances([math.nan] * len(step.half_sq_distances), math.nan) if broken else step)

    assert steps.excess is None  # never five steps in a row, so no lag of four


def test_a_few_steps_say_nothing():
    assert found_in(noise_of(0, share=2.0, steps=27)) is None
    assert found_in(noise_of(0, share=2.0, steps=60)) is not None
