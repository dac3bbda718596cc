"""SGD on a quadratic at a share of its best learning rate: trainings, and S_min, E_min and B_crit by integration.

The loss is ½ θᵀHθ and one example's gradient Hθ + ξ, Cov ξ = Σ; H and Σ share their eigenvectors. `docs/sweeps.md` has
the derivation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

CURVATURE = np.geomspace(1.0, 0.1, 12)
NOISE = np.full(12, 16.0)
START = np.full(12, 3.0 / np.sqrt(12))
TARGET = 0.4
SPACING = 1.03


@dataclass(frozen=True)
class Truth:
    """S_min in steps, E_min in examples, and their ratio."""

    min_steps: float
    min_examples: float

    @property
    def critical_batch(self) -> float:
        return self.min_examples / self.min_steps


def truth(share: float, *, intervals: int = 20_000) -> Truth:
    """S_min = ∫ GᵀHG/|G|² dτ / f and E_min = ∫ tr(HΣ)/|G|² dτ / f along the gradient flow from START to TARGET."""
    flow = np.concatenate([[0.0], np.geomspace(1e-5, 100.0, intervals)])
    end = np.interp(-TARGET, -_loss(_on_flow(flow)), flow)
    flow = np.append(flow[flow < end], end)
    squares = _on_flow(flow) ** 2
    gradient = squares @ CURVATURE**2
    return Truth(
        min_steps=float(np.trapezoid(squares @ CURVATURE**3 / gradient, flow)) / share,
        min_examples=float(np.trapezoid(CURVATURE @ NOISE / gradient, flow)) / share,
    )


def train(batch_size: float, share: float, seed: int) -> Iterator[tuple[int, float]]:
    """Evaluations of the true loss of one training, whose every step takes a share of the best learning rate there."""
    generator = np.random.default_rng([seed, round(batch_size)])
    theta, evaluate_at = START.copy(), 1
    noise, share_of_noise = np.sqrt(NOISE / batch_size), CURVATURE @ NOISE / batch_size
    yield 0, float(_loss(theta))
    for step in range(1, 1_000_000):
        gradient = CURVATURE * theta
        best = gradient @ gradient / (gradient**2 @ CURVATURE + share_of_noise)
        theta = theta - share * best * (gradient + noise * generator.standard_normal(theta.size))
        if step == evaluate_at:
            yield step, float(_loss(theta))
            evaluate_at = max(step + 1, round(step * SPACING))


def _on_flow(flow: np.ndarray) -> np.ndarray:
    return np.exp(-np.outer(flow, CURVATURE)) * START


def _loss(theta: np.ndarray) -> np.ndarray:
    return theta**2 @ CURVATURE / 2
