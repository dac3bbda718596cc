"""Several learning rates at one batch size, each with several seeds, trained in one stack up to a target.

Equal seeds see the same examples at every rate and batch size, so that settings differ by themselves and not by luck.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.random_stream import LENGTH, RandomStream
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, advance, evaluate
from noisescale_lab.sweep.trial import Curve, Goal, Setting, Status, Trial, steps_to_target

GRID_RATIO = 1.1
"""Steps from one evaluation to the next; loss and steps are interpolated between them on log scales."""

PATIENCE = 1.3
"""A rate that takes this much longer than the best one is given up."""

DIVERGED = 10.0
"""A mean loss this much above that of untrained weights will not come back; a metric that rises has no such level."""


class SharedStream(RandomStream):
    """A stream that lays the tables of the same seeds below each other once: a trial asks at every evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self._stacked: dict[tuple[int, ...], Tensor] = {}

    def tables(self, seeds: list[int], num_examples: int = LENGTH) -> tuple[Tensor, Tensor]:
        """The tables of different seeds below each other, [seeds, LENGTH], and each replica's row, [R, 1]."""
        different = tuple(sorted(set(seeds)))
        if different not in self._stacked:
            self._stacked = {different: super().tables(list(different))[0]}
        return self._stacked[different], torch.tensor([[different.index(seed)] for seed in seeds])


@dataclass(slots=True)
class _Rate:
    """A learning rate while it is trained: its replicas' rows in the stack, and what was evaluated."""

    learning_rate: float
    values: list[list[float]] = field(default_factory=list)
    status: Status = "complete"
    crossed: float = math.inf


def train_rates(
    task: Task,
    *,
    batch: int,
    rates: Sequence[float],
    seeds: Sequence[int],
    limit: float,
    best: float = math.inf,
    stream: RandomStream | None = None,
) -> list[Trial]:
    """One trial a rate, stopped at the hardest target, at `limit` steps, or when another rate is 1.3 times as fast.

    Args:
        task: What is trained.
        batch: In examples.
        rates: Learning rates.
        seeds: Each rate is run with every seed.
        limit: Most steps.
        best: Steps of the best rate known so far.
        stream: Where examples come from; None: a new one, which is the same.
    """
    start = time.perf_counter()
    stream = stream or SharedStream()
    running = [_Rate(rate) for rate in rates]
    alive = list(running)
    replicas = Replicas.new(task, list(seeds) * len(rates))
    first = _look(task, replicas, alive, len(seeds))
    steps = [0]
    while alive and steps[-1] < min(limit, PATIENCE * best):
        count = max(1, int(steps[-1] * (GRID_RATIO - 1)))
        learning_rate = [rate.learning_rate for rate in alive for _ in seeds]
        advance(
            task,
            stream,
            replicas,
            seeds=list(seeds) * len(alive),
            learning_rate=learning_rate,
            batch=batch,
            steps=count,
        )
        steps.append(steps[-1] + count)
        _look(task, replicas, alive, len(seeds))
        for rate in alive:
            _judge(rate, task, first, steps)
        best = min([best, *(rate.crossed for rate in alive)])
        kept = [place for place, rate in enumerate(alive) if rate.status == "complete" and math.isinf(rate.crossed)]
        if len(kept) < len(alive):
            alive = [alive[place] for place in kept]
            rows = [place * len(seeds) + seed for place in kept for seed in range(len(seeds))]
            replicas = Replicas.gather([replicas.take(row) for row in rows]) if rows else replicas
    seconds = (time.perf_counter() - start) / len(rates)
    return [_trial(rate, batch, seeds, steps, seconds) for rate in running]


def steps_of(trial: Trial, target: float, goal: Goal) -> float:
    """Steps of the metric averaged over seeds and then crossed; infinite where it was not reached or diverged."""
    if trial.status == "infeasible":
        return math.inf
    found = steps_to_target(trial.mean_curve(), target, goal).steps
    return math.inf if found is None else found


def _look(task: Task, replicas: Replicas, alive: Sequence[_Rate], num_seeds: int) -> float:
    """Evaluate all; the mean over those of the first rate."""
    losses = evaluate(task, replicas.parameters)
    for place, rate in enumerate(alive):
        rate.values.append(losses[place * num_seeds : (place + 1) * num_seeds].tolist())
    return math.fsum(alive[0].values[-1]) / num_seeds


def _judge(rate: _Rate, task: Task, first: float, steps: Sequence[int]) -> None:
    mean = math.fsum(rate.values[-1]) / len(rate.values[-1])
    worst = DIVERGED * first if task.goal == "min" else math.inf
    if not mean < worst:
        rate.status = "infeasible"
    elif mean <= task.targets[-1] if task.goal == "min" else mean >= task.targets[-1]:
        rate.crossed = float(steps[-1])


def _trial(rate: _Rate, batch: int, seeds: Sequence[int], steps: Sequence[int], seconds: float) -> Trial:
    values = rate.values if rate.status == "complete" else rate.values[:-1]
    # the evaluation before the first step comes at step 0, where the logarithm of the step has no value
    curves = tuple(
        Curve(seed, tuple(steps[: len(values)]), tuple(row[place] for row in values))
        for place, seed in enumerate(seeds)
    )
    return Trial(Setting(batch, rate.learning_rate), rate.status, curves, seconds)
