"""Trains stacked replicas for some steps at one batch size, and records what a watched run would show.

R replicas, B examples, P parameters, K steps.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.network import Gradient
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.task import Task

Array = npt.NDArray[np.float64]
EVALUATED_AT_ONCE = 32
DRAWN_AT_ONCE = 1 << 14
"""Examples of all seeds, or of one step where it has more."""


@dataclass(slots=True)
class Replicas:
    """Weights and optimizer states of R replicas; changed in place by `train`.

    Attributes:
        parameters: [R, P].
        states: Of the optimizer, [states, R, P].
        num_updates: Optimizer updates so far, [R].
        num_examples: Examples drawn so far, [R].
        carried: What examples hand on to the next step, [R, B, ...]; None before the first, or where there is nothing.
    """

    parameters: Tensor
    states: Tensor
    num_updates: Tensor
    num_examples: Tensor
    carried: Tensor | None = None

    @classmethod
    def new(cls, task: Task, seeds: list[int]) -> "Replicas":
        """Untrained replicas, one a seed."""
        parameters = task.network.initial(seeds)
        states = torch.zeros(task.optimizer.num_states, *parameters.shape)
        return cls(parameters, states, torch.zeros(len(seeds)), torch.zeros(len(seeds), dtype=torch.long))

    @classmethod
    def gather(cls, replicas: "list[Replicas]") -> "Replicas":
        """Several stacks as one."""
        carried = [r.carried for r in replicas if r.carried is not None]
        return cls(
            torch.cat([r.parameters for r in replicas]),
            torch.cat([r.states for r in replicas], dim=1),
            torch.cat([r.num_updates for r in replicas]),
            torch.cat([r.num_examples for r in replicas]),
            torch.cat(carried) if len(carried) == len(replicas) else None,
        )

    def take(self, row: int) -> "Replicas":
        """A copy of one replica."""
        rows = slice(row, row + 1)
        return Replicas(
            self.parameters[rows].clone(),
            self.states[:, rows].clone(),
            self.num_updates[rows].clone(),
            self.num_examples[rows].clone(),
            None if self.carried is None else self.carried[rows].clone(),
        )


@dataclass(frozen=True, slots=True)
class Record:
    """What K steps showed; every array is [K, R].

    Attributes:
        loss: Mean loss of the batch before the update.
        trace_cov: Estimate of tr Σ from the batch's per-example gradients.
        grad_sq_norm: Estimate of |G|².
        update_sq_norm: |u|², u what the optimizer added to the weights.
        average: Mean of the weights after each of the last ⌈K / 2⌉ updates, [R, P]; None unless asked for.
    """

    loss: Array
    trace_cov: Array
    grad_sq_norm: Array
    update_sq_norm: Array
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
    tables, rows = stream.tables(seeds, int(replicas.num_examples.max()) + steps * batch)
    rate = torch.tensor(learning_rate)[:, None]
    rows_of_steps = []
    average = torch.zeros_like(replicas.parameters) if wants_average else None
    first_averaged = steps - (steps + 1) // 2
    for step in range(steps):
        drawn = keys(tables, rows, replicas.num_examples[:, None], batch)
        losses, gradient = _gradient(task, replicas, drawn, task.sample(drawn), wants_norms=True)
        shown = losses.mean(1), gradient.example_sq_norm.mean(1), gradient.mean.square().sum(1)
        update = _update(task, replicas, gradient.mean, rate, batch)
        rows_of_steps.append(torch.stack([*shown, update.square().sum(1)]))
        if average is not None and step >= first_averaged:
            average += replicas.parameters / (steps - first_averaged)
    loss, small, big, moved = torch.stack(rows_of_steps, dim=1).double()
    trace_cov = batch / (batch - 1) * (small - big)  # in torch: a diverged replica's infinities warn in numpy
    return Record(loss.numpy(), trace_cov.numpy(), (big - trace_cov / batch).numpy(), moved.numpy(), average)


def advance(
    task: Task,
    stream: RandomStream,
    replicas: Replicas,
    *,
    seeds: list[int],
    learning_rate: list[float],
    batch: int,
    steps: int,
) -> None:
    """Train in place as `train` does, without a look at single examples: for sweeps, where steps are all that counts.

    Examples are drawn once a seed, and for several steps at a time, so all replicas must have seen as many.

    Args:
        task: What is trained.
        stream: Where examples come from.
        replicas: Weights and states.
        seeds: Seed of each replica's examples.
        learning_rate: Of each replica.
        batch: B, examples a step.
        steps: How many.
    """
    tables, rows = stream.tables(seeds)
    each = torch.arange(len(tables))[:, None]
    rate = torch.tensor(learning_rate)[:, None]
    at_once = max(1, DRAWN_AT_ONCE // (batch * len(tables)))
    for first in range(0, steps, at_once):
        count = min(at_once, steps - first)
        drawn = keys(tables, each, replicas.num_examples[:1, None], count * batch)
        parts = [torch.split(part, batch, 1) for part in (drawn, *task.sample(drawn))]
        for some, inputs, targets in zip(*parts, strict=True):
            examples = inputs[rows[:, 0]], targets[rows[:, 0]]
            gradient = _gradient(task, replicas, some[rows[:, 0]], examples, wants_norms=False)[1]
            _update(task, replicas, gradient.mean, rate, batch)


def _gradient(
    task: Task, replicas: Replicas, drawn: Tensor, examples: tuple[Tensor, Tensor], *, wants_norms: bool
) -> tuple[Tensor, Gradient]:
    """Losses [R, B] and the gradient at the replicas' weights."""
    inputs, targets = examples
    if task.carried is not None:
        before = task.carried.begin(drawn) if replicas.carried is None else replicas.carried
        inputs = torch.cat([inputs, before], -1)
    values = task.network.forward(replicas.parameters, inputs)
    if task.carried is not None:
        replicas.carried = task.carried.after(values[-1])
    losses, derivatives = task.loss(values[-1], targets)
    found = task.network.backward(replicas.parameters, inputs, values, derivatives, wants_norms=wants_norms)
    return losses, found


def _update(task: Task, replicas: Replicas, mean: Tensor, rate: Tensor, batch: int) -> Tensor:
    """Updates in place, and what was added to the parameters, [R, P]."""
    update = task.optimizer.update(mean, replicas.states, rate, replicas.num_updates[:, None])
    replicas.parameters += update
    replicas.num_updates += 1
    replicas.num_examples += batch
    return update


@torch.no_grad()
def evaluate(task: Task, parameters: Tensor) -> Array:
    """The metric of each replica, [R]: the loss on the evaluation set, unless the task has a metric of its own."""
    if task.metric is not None:
        return task.metric(parameters).double().numpy()
    inputs, targets = task.evaluation
    found = []
    for start in range(0, len(parameters), EVALUATED_AT_ONCE):
        some = parameters[start : start + EVALUATED_AT_ONCE]
        outputs = task.network.forward(some, inputs.expand(len(some), *inputs.shape[1:]))[-1]
        found.append(task.loss(outputs, targets)[0].double().mean(1))
    return torch.cat(found).numpy()
