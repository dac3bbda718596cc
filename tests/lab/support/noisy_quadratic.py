"""SGD on a quadratic with known H and Σ: trainings, and the exact expectation of their loss."""

from collections.abc import Iterator
from itertools import count

import numpy as np

CURVATURE = np.geomspace(1.0, 0.01, 100)
NOISE = np.full(100, 1.0)
"""Variance of one example's gradient along each eigenvector of H."""
START = 1.0
TARGET = 0.3


def evaluation_steps() -> Iterator[int]:
    """A geometric grid of steps, about 7 % apart."""
    last = 0
    for number in count():
        step = max(last + 1, round(1.07**number))
        yield step
        last = step


def train(batch_size: int, lr: float, seed: int) -> Iterator[tuple[int, float]]:
    """Evaluations of the population loss; the gradient's noise is that of a batch."""
    generator = np.random.default_rng(seed)
    theta = np.full(CURVATURE.size, START)
    yield 0, loss(theta**2)
    done = 0
    for step in evaluation_steps():
        for _ in range(step - done):
            noise = np.sqrt(NOISE / batch_size) * generator.standard_normal(theta.size)
            theta = theta - lr * (CURVATURE * theta + noise)
        done = step
        yield step, loss(theta**2)


def loss(squares: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(CURVATURE @ squares) / 2


def exact_steps(batch_size: float, lr: float, target: float = TARGET, most: int = 20_000) -> float:
    """Steps until the expected loss reaches the target: E θ² along each eigenvector follows a linear recursion."""
    squares, before = np.full(CURVATURE.size, START**2), loss(np.full(CURVATURE.size, START**2))
    for step in range(1, most):
        squares = (1 - lr * CURVATURE) ** 2 * squares + lr**2 * NOISE / batch_size
        now = loss(squares)
        if now <= target:
            return step - 1 + (before - target) / (before - now)
        before = now
    return np.inf


def exact_best_steps(batch_size: float, target: float = TARGET) -> float:
    """The fewest expected steps over learning rates."""
    return min(exact_steps(batch_size, lr, target, 4_000) for lr in np.geomspace(0.01, 1.9, 60))
