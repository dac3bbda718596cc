"""Trains stacked replicas for some steps at one batch size, and records what a watched run would show.

R replicas, B examples, P parameters, K steps.
"""

import math
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
HALVES = 2
"""Parts of a batch that a promise is told from."""

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
        trace_cov: Estimate of tr Σ from the gradients of the batch's examples, or of its small batches.
        grad_sq_norm: Estimate of |G|².
        update_sq_norm: |u|², u what the optimizer added to the weights, without weight decay.
        promised: The fall of the loss that the update promised to first order, free of the batch's noise; not a number
            in the first updates of Adam.
        average: Mean of the weights after each of the last ⌈K / 2⌉ updates, [R, P]; None unless asked for.
    """

    loss: Array
    trace_cov: Array
    grad_sq_norm: Array
    update_sq_norm: Array
    promised: Array
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
    is_of_examples = task.small_batches is None
    # plain SGD promises what its examples tell, and what an example hands on is not cut into parts
    is_whole = is_of_examples and (task.optimizer.name == "sgd" or task.carried is not None)
    parts = 1 if is_whole else equal_parts(batch, task.small_batches or HALVES)
    groups = batch if is_of_examples else parts
    rows_of_steps = []
    average = torch.zeros_like(replicas.parameters) if wants_average else None
    first_averaged = steps - (steps + 1) // 2
    for step in range(steps):
        drawn = keys(tables, rows, replicas.num_examples[:, None], batch)
        losses, gradient = _gradient(task, replicas, drawn, task.sample(drawn), wants_norms=is_of_examples, parts=parts)
        mean, of_parts = gradient.mean.mean(1), gradient.mean
        small = gradient.example_sq_norm.mean(1) if is_of_examples else of_parts.square().sum(2).mean(1)
        now = rate * task.warmed_up(replicas.num_updates[:, None])
        promised = _promised(task, replicas, of_parts, now)
        update = _update(task, replicas, mean, now, batch)
        shown = losses.mean(1), small, mean.square().sum(1), update.square().sum(1), promised, now[:, 0]
        rows_of_steps.append(torch.stack(shown))
        if average is not None and step >= first_averaged:
            average += replicas.parameters / (steps - first_averaged)
    loss, small, big, moved, promised, rates = torch.stack(rows_of_steps, dim=1).double()
    trace_cov = batch / (groups - 1) * (small - big)  # in torch: a diverged replica's infinities warn in numpy
    grad_sq_norm = big - trace_cov / batch
    promised = rates * grad_sq_norm if task.optimizer.name == "sgd" else promised
    return Record(loss.numpy(), trace_cov.numpy(), grad_sq_norm.numpy(), moved.numpy(), promised.numpy(), average)


def equal_parts(batch: int, wanted: int) -> int:
    """Into how many equal parts a batch falls, at least 2, as near to the wanted number as it may.

    Args:
        batch: In examples, at least 2.
        wanted: At least 2.
    """
    fitting = [count for count in range(2, min(batch, wanted * wanted) + 1) if batch % count == 0]
    return min(fitting or [batch], key=lambda count: abs(math.log(count / wanted)))


def _promised(task: Task, replicas: Replicas, parts: Tensor, rate: Tensor) -> Tensor:
    """Of the update to come, [R]; not a number where there is one part alone."""
    if parts.shape[1] < 2:
        return torch.full((len(parts),), torch.nan)
    return task.optimizer.promise(parts, replicas.states, rate, replicas.num_updates[:, None])


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
            now = rate * task.warmed_up(replicas.num_updates[:, None])
            _update(task, replicas, gradient.mean[:, 0], now, batch)


def _gradient(
    task: Task,
    replicas: Replicas,
    drawn: Tensor,
    examples: tuple[Tensor, Tensor],
    *,
    wants_norms: bool,
    parts: int = 1,
) -> tuple[Tensor, Gradient]:
    """Losses [R, B] and the gradients at the replicas' weights, the mean one of each of K parts, [R, K, P].

    A part is a replica of its own.
    """
    inputs, targets = examples
    if task.carried is not None:
        before = task.carried.begin(drawn) if replicas.carried is None else replicas.carried
        inputs = torch.cat([inputs, before], -1)
    replicated, batch = drawn.shape
    parameters = replicas.parameters
    if parts > 1:
        parameters = parameters.repeat_interleave(parts, 0)
        inputs, targets = (one.reshape(replicated * parts, batch // parts, *one.shape[2:]) for one in (inputs, targets))
    values = task.network.forward(parameters, inputs)
    if task.carried is not None:
        replicas.carried = task.carried.after(values[-1])
    losses, derivatives = task.loss(values[-1], targets)
    found = task.network.backward(parameters, inputs, values, derivatives, wants_norms=wants_norms)
    mean = found.mean.view(replicated, parts, -1)
    return losses.view(replicated, batch), Gradient(mean, found.example_sq_norm.view(replicated, batch))


def _update(task: Task, replicas: Replicas, mean: Tensor, rate: Tensor, batch: int) -> Tensor:
    """Updates in place, and what was added to the parameters beside weight decay, [R, P]."""
    update = task.optimizer.update(mean, replicas.states, rate, replicas.num_updates[:, None])
    if task.optimizer.weight_decay:
        replicas.parameters *= 1 - rate * task.optimizer.weight_decay
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
