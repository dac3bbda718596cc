"""Runs of a task at many learning rates at once, with the path of each at some shares of the plan.

R replicas, P parameters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule, family_of
from noisescale_core.estimators.path import Path, push_since
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import evaluate

BETAS, EPSILON, DECAY = (0.9, 0.99), 1e-8, 0.01
WARM_UP = 0.06
BATCH = 32


@dataclass(frozen=True, slots=True)
class Setting:
    """How runs are trained.

    Attributes:
        optimizer: "SGD" or "AdamW".
        momentum: Of SGD, or AdamW's first β.
        decays: Whether the rate goes to zero along a cosine; else it stays after the warm-up.
    """

    optimizer: str
    momentum: float
    decays: bool

    @property
    def schedule(self) -> Schedule:
        """As the core calls it."""
        return "cosine" if self.decays else "constant"

    @property
    def name(self) -> str:
        """As figures call it."""
        return f"{family_of(self.optimizer, self.momentum)}, {self.schedule}"

    @property
    def rates(self) -> list[float]:
        """A grid that is wide enough for the best rate of most tasks to lie inside."""
        highest = {"AdamW": 0}.get(self.optimizer, 4 if self.momentum else 7)
        return [2.0**power for power in range(highest - 17, highest + 1)]

    def factor(self, step: int, planned: int) -> float:
        """The rate of a step over its peak."""
        warm_up = max(1, round(WARM_UP * planned))
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (planned - warm_up))) if self.decays else 1.0


@dataclass(frozen=True, slots=True)
class RateRun:
    """One run.

    Attributes:
        rate: Peak learning rate.
        seed: Of weights and examples.
        loss: On the evaluation examples at the end; infinite where it has diverged.
        paths: At each of the shares, with the push since half of it; None where it has diverged by then.
    """

    rate: float
    seed: int
    loss: float
    paths: tuple[Path | None, ...]


SETTINGS = tuple(
    Setting(optimizer, momentum, decays)
    for (optimizer, momentum), decays in product((("SGD", 0.0), ("SGD", 0.9), ("AdamW", BETAS[0])), (False, True))
)


class _Momentum:
    def __init__(self, parameters: Tensor, momentum: float) -> None:
        self._buffer = torch.zeros_like(parameters)
        self._momentum = momentum

    def update(self, gradient: Tensor, rates: Tensor) -> Tensor:
        self._buffer.mul_(self._momentum).add_(gradient)
        return -rates * self._buffer


class _Adam:
    def __init__(self, parameters: Tensor) -> None:
        self._mean, self._square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self._steps = 0

    def update(self, gradient: Tensor, rates: Tensor) -> Tensor:
        self._steps += 1
        self._mean.lerp_(gradient, 1 - BETAS[0])
        self._square.lerp_(gradient.square(), 1 - BETAS[1])
        mean = self._mean / (1 - BETAS[0] ** self._steps)
        return -rates * mean / ((self._square / (1 - BETAS[1] ** self._steps)).sqrt() + EPSILON)


def train(
    task: Task, setting: Setting, seeds: Sequence[int], *, planned: int, shares: Sequence[float]
) -> list[RateRun]:
    """Runs of every rate of the grid with every seed; those of one seed start alike and see the same examples.

    Args:
        task: What is trained.
        setting: How.
        seeds: Of weights and examples.
        planned: Steps.
        shares: Of the plan, rising, at which paths are told.
    """
    of_replicas = [(rate, seed) for rate in setting.rates for seed in seeds]
    peaks = torch.tensor([[rate] for rate, _ in of_replicas])
    parameters = task.network.initial([seed for _, seed in of_replicas])
    start, totals = parameters.clone(), torch.zeros(len(of_replicas), dtype=torch.float64)
    optimizer = _Adam(parameters) if setting.optimizer == "AdamW" else _Momentum(parameters, setting.momentum)
    tables, rows = RandomStream().tables([seed for _, seed in of_replicas], planned * BATCH)
    ends = {round(share * planned): place for place, share in enumerate(shares)}
    halves = {round(share * planned / 2) for share in shares}
    paths: list[list[Path | None]] = [[None] * len(shares) for _ in of_replicas]
    moments: list[dict[int, Path]] = [{} for _ in of_replicas]
    for step in range(planned):
        positions = torch.full((len(of_replicas), 1), step * BATCH)
        gradient = _gradient(task, parameters, keys(tables, rows, positions, BATCH))
        now = peaks * setting.factor(step, planned)
        update = optimizer.update(gradient, now)
        if setting.optimizer == "AdamW":
            parameters = parameters * (1 - DECAY * now)
        parameters = parameters + update
        totals += update.double().square().sum(1)
        made = step + 1
        if made in ends or made in halves:
            distances = (parameters - start).double().square().sum(1)
            for row, (total, distance) in enumerate(zip(totals.tolist(), distances.tolist(), strict=True)):
                if math.isfinite(total) and math.isfinite(distance):
                    moments[row][made] = path = Path(made, total, 0.0, distance, setting.momentum)
                    half = moments[row].get(round(shares[ends[made]] * planned / 2)) if made in ends else None
                    if half is not None:
                        paths[row][ends[made]] = path._replace(push=push_since(half, path))
    losses = evaluate(task, parameters).tolist()
    return [
        RateRun(rate, seed, loss if math.isfinite(loss) else math.inf, tuple(of_run))
        for (rate, seed), loss, of_run in zip(of_replicas, losses, paths, strict=True)
    ]


def _gradient(task: Task, parameters: Tensor, drawn: Tensor) -> Tensor:
    inputs, targets = task.sample(drawn)
    values = task.network.forward(parameters, inputs)
    _, derivatives = task.loss(values[-1], targets)
    return task.network.backward(parameters, inputs, values, derivatives, wants_norms=False).mean


def best_rate(runs: Sequence[RateRun]) -> float | None:
    """The rate with the least mean loss, between rates by a parabola; None at an edge, where a better one may lie.

    Args:
        runs: Of one task and setting.
    """
    rates = sorted({run.rate for run in runs})
    means = [_mean([run.loss for run in runs if run.rate == rate]) for rate in rates]
    place = min(range(len(rates)), key=means.__getitem__)
    if place in (0, len(rates) - 1):
        return None
    before, at, after = (means[place + offset] for offset in (-1, 0, 1))
    if not math.isfinite(before) or not math.isfinite(after):
        return rates[place]
    bend = before - 2 * at + after
    offset = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return rates[place] * float((rates[place + 1] / rates[place]) ** offset)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
