"""Trains stacked replicas for some steps at one batch size, and records what a watched run would show.

R replicas, B examples, P parameters, K steps.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisescale.reproduce.stacked.random_stream import RandomStream, keys
from noisescale.reproduce.task import Task

Array = npt.NDArray[np.float64]
EVALUATED_AT_ONCE = 32


@dataclass(slots=True)
class Replicas:
    """Weights and optimizer states of R replicas; changed in place by `train`.

    Attributes:
        parameters: [R, P].
        states: Of the optimizer, [states, R, P].
        num_updates: Optimizer updates so far, [R].
        num_examples: Examples drawn so far, [R].
    """

    parameters: Tensor
    states: Tensor
    num_updates: Tensor
    num_examples: Tensor

    @classmethod
    def new(cls, task: Task, seeds: list[int]) -> "Replicas":
        """Untrained replicas, one a seed."""
        parameters = task.network.initial(seeds)
        states = torch.zeros(task.optimizer.num_states, *parameters.shape)
        return cls(parameters, states, torch.zeros(len(seeds)), torch.zeros(len(seeds), dtype=torch.long))

    @classmethod
    def gather(cls, replicas: "list[Replicas]") -> "Replicas":
        """Several stacks as one."""
        return cls(
            torch.cat([r.parameters for r in replicas]),
            torch.cat([r.states for r in replicas], dim=1),
            torch.cat([r.num_updates for r in replicas]),
            torch.cat([r.num_examples for r in replicas]),
        )

    def take(self, row: int) -> "Replicas":
        """A copy of one replica."""
        rows = slice(row, row + 1)
        return Replicas(
            self.parameters[rows].clone(),
            self.states[:, rows].clone(),
            self.num_updates[rows].clone(),
            self.num_examples[rows].clone(),
        )


@dataclass(frozen=True, slots=True)
class Record:
    """What K steps showed; every array is [K, R].

    Attributes:
        loss: Mean loss of the batch before the update.
        trace_cov: Estimate of tr Σ from the batch's per-example gradients.
        grad_sq_norm: Estimate of |G|².
        average: Mean of the weights after each of the last ⌈K / 2⌉ updates, [R, P]; None unless asked for.
    """

    loss: Array
    trace_cov: Array
    grad_sq_norm: Array
    average: Tensor | None


def train(
    task: Task,
    stream: RandomStream,
    replicas: Replicas,
    *,
    seeds: list[int],
    learning_rate: list[float],
    batch: int,
    steps: int,
    wants_average: bool = False,
) -> Record:
    """Train all replicas in place for so many steps.

    Args:
        task: What is trained.
        stream: Where examples come from.
        replicas: Weights and states.
        seeds: Seed of each replica's examples.
        learning_rate: Of each replica.
        batch: B, examples a step, at least 2: a single example has no spread.
        steps: K.
        wants_average: Whether to average the weights over the last half.

    Raises:
        ValueError: With batches below 2.
    """
    if batch < 2:
        raise ValueError(f"batch must be at least 2 to have a spread, got {batch}")
    tables, rows = stream.tables(seeds)
    rate = torch.tensor(learning_rate)[:, None]
    rows_of_steps = []
    average = torch.zeros_like(replicas.parameters) if wants_average else None
    first_averaged = steps - (steps + 1) // 2
    for step in range(steps):
        drawn = keys(tables, rows, replicas.num_examples[:, None], batch)
        inputs, targets = task.sample(drawn)
        values = task.network.forward(replicas.parameters, inputs)
        losses, derivatives = task.loss(values[-1], targets)
        gradient = task.network.backward(replicas.parameters, inputs, values, derivatives)
        rows_of_steps.append(
            torch.stack([losses.mean(1), gradient.example_sq_norm.mean(1), gradient.mean.square().sum(1)])
        )
        update = task.optimizer.update(gradient.mean, replicas.states, rate, replicas.num_updates[:, None])
        replicas.parameters += update
        replicas.num_updates += 1
        replicas.num_examples += batch
        if average is not None and step >= first_averaged:
            average += replicas.parameters / (steps - first_averaged)
    loss, small, big = torch.stack(rows_of_steps, dim=1).double()
    trace_cov = batch / (batch - 1) * (small - big)  # in torch: a diverged replica's infinities warn in numpy
    return Record(loss.numpy(), trace_cov.numpy(), (big - trace_cov / batch).numpy(), average)


def evaluate(task: Task, parameters: Tensor) -> Array:
    """Loss of each replica on the task's evaluation set, [R]."""
    inputs, targets = task.evaluation
    found = []
    for start in range(0, len(parameters), EVALUATED_AT_ONCE):
        some = parameters[start : start + EVALUATED_AT_ONCE]
        outputs = task.network.forward(some, inputs.expand(len(some), *inputs.shape[1:]))[-1]
        found.append(task.loss(outputs, targets)[0].double().mean(1))
    return torch.cat(found).numpy()
