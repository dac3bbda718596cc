"""A tuned run once more, in plain PyTorch and watched by the product: the only source of noise scales here.

B examples of a step. It starts from the same weights as the stacked engine and sees the same examples in the same
order, so the engine's exact per-example values on that trajectory check what the hooks say.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.outbox import Outbox, Whereabouts
from noisescale.run.run import Run
from noisescale.transport.wire import Measurement, Record, RunRecord
from noisescale_lab.reproduce.claim.plain_model import flat_parameters, plain_model, plain_optimizer
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Array, Replicas, evaluate, train

MOST_MICRO_BATCHES = 4
"""Small batches of a step. More tell little more of |G|², which is what is hard to know."""

EXAMPLES_AT_ONCE = 1 << 15
"""Of all seeds in one stack: more do not fit where memory is quick."""


class KeptRows(Outbox):
    """Keeps the rows that a run sends, and hands everything on where there is somewhere to send it to.

    Args:
        beyond: Where records go on to; None: nowhere.

    Attributes:
        rows: One an optimizer step.
    """

    def __init__(self, beyond: Outbox | None) -> None:
        self.rows: list[Measurement] = []
        self._beyond = beyond

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child that has logged nothing."""
        return self._beyond is not None and self._beyond.is_inherited

    def send(self, record: Record) -> None:
        """Keep a row, hand on any record."""
        if isinstance(record, Measurement):
            self.rows.append(record)
        if self._beyond is not None:
            self._beyond.send(record)

    def flush(self, timeout_seconds: float) -> bool:
        """Whether everything has arrived."""
        return self._beyond is None or self._beyond.flush(timeout_seconds)

    def close(self, timeout_seconds: float) -> Whereabouts | None:
        """Deliver what is left."""
        return None if self._beyond is None else self._beyond.close(timeout_seconds)


@dataclass(frozen=True, slots=True)
class Terms:
    """Both terms of the noise scale at each step of several seeds; every array is [steps, seeds].

    Attributes:
        trace_cov: tr Σ, squared gradient × examples.
        grad_sq_norm: |G|², squared gradient.
    """

    trace_cov: Array
    grad_sq_norm: Array


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watched run left behind.

    Attributes:
        run_id: On the server, where there is one.
        rows: One an optimizer step.
    """

    run_id: str
    rows: Sequence[Measurement]


def watch_run(
    task: Task,
    *,
    batch: int,
    learning_rate: float,
    seed: int,
    steps: int,
    evaluated_at: Collection[int],
    config: Config,
) -> Watched:
    """Train and watch, with every step split into at most four micro-batches.

    Args:
        task: What is trained.
        batch: B.
        learning_rate: Constant.
        seed: Of weights and examples.
        steps: How many.
        evaluated_at: Steps taken at which the evaluation loss is logged.
        config: Where the run is sent; mode "disabled": nowhere.
    """
    kept: list[KeptRows] = []
    run = Run(config, _description(task, batch, learning_rate, seed), _opener(config, kept))
    model = plain_model(task.network, seed)
    optimizer = plain_optimizer(task.optimizer, model, learning_rate)
    run.watch(model, optimizer, groups="none", log_every=1, small_batches="micro_batches")
    tables, rows = RandomStream().tables([seed], steps * batch)
    carried: torch.Tensor | None = None
    for step in range(steps):
        drawn = keys(tables, rows, torch.tensor([[step * batch]]), batch)
        inputs, targets = task.sample(drawn)
        if task.carried is not None:
            inputs = torch.cat([inputs, task.carried.begin(drawn) if carried is None else carried], -1)
        loss, outputs = _micro_batches(task, model, inputs[0], targets[0])
        if task.carried is not None:
            carried = task.carried.after(outputs[None])
        run.log_gradients(loss, batch_size=batch)
        optimizer.step()
        optimizer.zero_grad()
        if step + 1 in evaluated_at:
            run.log_metrics(step=step, **{task.metric_name: float(evaluate(task, flat_parameters(model)[None])[0])})
    run.finish()
    return Watched(run.id, kept[0].rows)


def _micro_batches(
    task: Task, model: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Forward and backward of a step's examples in parts; the mean loss and all outputs."""
    num_parts = min(MOST_MICRO_BATCHES, len(inputs))
    losses, outputs = [], []
    for part_inputs, part_targets in zip(inputs.chunk(num_parts), targets.chunk(num_parts), strict=True):
        found = model(part_inputs)
        loss = task.loss(found[None], part_targets[None])[0].mean() * (len(part_inputs) / len(inputs))
        loss.backward()  # type: ignore[no-untyped-call]  # torch ships no types for it
        losses.append(loss.detach())
        outputs.append(found.detach())
    return torch.stack(losses).sum(), torch.cat(outputs)


def exact_terms(task: Task, *, batch: int, learning_rate: float, seeds: Sequence[int], steps: int) -> Terms:
    """The stacked engine's terms on the same trajectories, from the norm of every single example's gradient."""
    at_once = max(1, EXAMPLES_AT_ONCE // batch)
    parts = [list(seeds[first : first + at_once]) for first in range(0, len(seeds), at_once)]
    records = [
        train(
            task,
            RandomStream(),
            Replicas.new(task, part),
            seeds=part,
            learning_rate=[learning_rate] * len(part),
            batch=batch,
            steps=steps,
        )
        for part in parts
    ]
    trace, square = ([getattr(one, name) for one in records] for name in ("trace_cov", "grad_sq_norm"))
    return Terms(np.concatenate(trace, axis=1), np.concatenate(square, axis=1))


def terms_of(runs: Sequence[Watched]) -> Terms:
    """The terms that the runs of several seeds sent; not a number where a step gave none."""
    steps = min(len(run.rows) for run in runs)
    trace = [[_number(row.sum_trace_cov) for row in run.rows[:steps]] for run in runs]
    square = [[_number(row.sum_grad_sq_norm) for row in run.rows[:steps]] for run in runs]
    return Terms(np.array(trace).T, np.array(square).T)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _opener(config: Config, kept: list[KeptRows]) -> Callable[[str, Callable[[], RunRecord]], Outbox]:
    def open_outbox(run_id: str, describe: Callable[[], RunRecord]) -> Outbox:
        beyond = None
        if config.mode == "online":
            beyond = Outbox(run_id, config, describe, lambda fault: None)
        kept.append(KeptRows(beyond))
        return kept[-1]

    return open_outbox


def _description(task: Task, batch: int, learning_rate: float, seed: int) -> RunDescription:
    return RunDescription(
        project="reproduce",
        task=task.name,
        name=f"{task.name}, batch {batch}, seed {seed}",
        unit=task.unit,
        units_per_example=task.units_per_example,
        config={"seed": seed, "lr": learning_rate, "batch_size": batch},
        tags=("reproduce",),
    )
