"""The noise scale between imported runs against the exact one within runs, at equal loss, on a database of real runs.

Small classifiers of scikit-learn's digits are trained by three optimizers at six batch sizes, twenty learning rates
each, and written in the layout of Shallue et al. 2018. The importer reads them. Within a run tr Σ and |G|² of all
training examples are computed exactly, from each example's own gradient; compared are the runs with the largest batch.
"""

import json
import math
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import torch
from results_file import Figure, write
from sklearn.datasets import load_digits
from smoke import size
from torch.nn.functional import cross_entropy

from noisescale_importers.answers.equal_loss import AtLoss, noise_scales
from noisescale_importers.answers.summary import Summary
from noisescale_importers.delivery.assembly import Assembly
from noisescale_importers.prepared import Wishes, head_of, prepare, summary_of
from noisescale_importers.readers.shallue import importer
from noisescale_importers.source import Damage

WIDTHS = size(((), (32,), (32, 32)), ((),))
OPTIMIZERS = size(("sgd", "momentum", "adam"), ("sgd",))
BATCHES = size((8, 16, 32, 64, 128, 256), (16, 128))
NUM_TRIALS = size(20, 2)
NUM_STEPS = size(600, 60)
NUM_LOOKS = size(30, 6)
DESIGN_SEED = 1
"""The usual spread of 15 % was chosen on these runs: benchmark_between_runs_unseen.py asks others."""

RATES = {"sgd": (0.02, 0.5), "momentum": (0.003, 0.08), "adam": (0.0005, 0.02)}

Look = tuple[float, float, float]
"""Training loss, tr Σ and |G|² of all training examples."""


@dataclass(frozen=True, slots=True)
class Data:
    """Examples of one family of tasks, to train on and held out."""

    name: str
    inputs: torch.Tensor
    labels: torch.Tensor
    held_out: torch.Tensor
    held_out_labels: torch.Tensor


def digits() -> Data:
    """1,500 examples to train on, the others held out."""
    found = load_digits()
    return split("digits", found.data / 16, found.target, 1_500)


def split(name: str, inputs: np.ndarray, labels: np.ndarray, count: int) -> Data:
    """The first examples to train on, the others held out."""
    examples, targets = torch.tensor(inputs).double(), torch.tensor(labels)
    return Data(name, examples[:count], targets[:count], examples[count:], targets[count:])


class Stack:
    """As many equal networks as trials, each with its own weights and learning rate, trained side by side."""

    def __init__(self, sizes: Sequence[int], optimizer: str, rates: torch.Tensor, generator: torch.Generator) -> None:
        count = len(rates)
        self.weights = [
            (
                torch.randn(count, wide, narrow, generator=generator, dtype=torch.double) / math.sqrt(wide)
            ).requires_grad_()
            for wide, narrow in pairwise(sizes)
        ]
        self.biases = [torch.zeros(count, 1, narrow, dtype=torch.double, requires_grad=True) for narrow in sizes[1:]]
        self._rates = rates.double().view(-1, 1, 1)
        self._optimizer = optimizer
        self._first = [torch.zeros_like(one) for one in self.parameters]
        self._second = [torch.zeros_like(one) for one in self.parameters]
        self._count = 0

    @property
    def parameters(self) -> list[torch.Tensor]:
        """Weights and biases."""
        return [*self.weights, *self.biases]

    def forward(self, inputs: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """What goes into each layer and what comes out of it, of [trial, example, …]."""
        ins, outs = [], []
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            ins.append(inputs if number == 0 else torch.relu(outs[-1]))
            outs.append(ins[-1] @ weight + bias)
        return ins, outs

    def step(self, gradients: Sequence[torch.Tensor]) -> None:
        """One update of every trial."""
        self._count += 1
        with torch.no_grad():
            for parameter, gradient, first, second in zip(
                self.parameters, gradients, self._first, self._second, strict=True
            ):
                parameter -= self._rates * self._direction(gradient, first, second)

    def _direction(self, gradient: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        if self._optimizer == "sgd":
            return gradient
        if self._optimizer == "momentum":
            return first.mul_(0.9).add_(gradient)
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = math.sqrt(1 - 0.999**self._count) / (1 - 0.9**self._count)
        return scale * first / (second.sqrt() + 1e-8)

    def losses(self, outs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Of each trial and example."""
        return cross_entropy(outs.transpose(1, 2), labels, reduction="none")

    def look(self, data: Data) -> list[Look]:
        """Exactly, of each trial: |g_i|² of a layer is that of its input times that of its output's gradient."""
        labels = data.labels.expand(len(self._rates), -1)
        ins, outs = self.forward(data.inputs.expand(len(self._rates), -1, -1))
        losses = self.losses(outs[-1], labels)
        deltas = torch.autograd.grad(losses.sum(), outs)
        count = data.inputs.shape[0]
        own = sum((one.square().sum(2) + 1) * delta.square().sum(2) for one, delta in zip(ins, deltas, strict=True))
        mean = sum(
            (one.transpose(1, 2) @ delta / count).square().sum((1, 2)) + (delta.mean(1)).square().sum(1)
            for one, delta in zip(ins, deltas, strict=True)
        )
        noise = own.mean(1) - mean
        return list(zip(losses.mean(1).tolist(), noise.tolist(), mean.tolist(), strict=True))


def train(
    folder: Path,
    data: Data,
    widths: Sequence[int],
    optimizer: str,
    batch: int,
    looks: dict[tuple[str, int], list[list[Look]]],
    seed: int = DESIGN_SEED,
    num_trials: int = NUM_TRIALS,
) -> None:
    """The trials of a workload at a batch size, written as a study."""
    name = f"{data.name}/mlp{'_'.join(map(str, widths))}/{optimizer}"
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name}/{batch}/{seed}".encode()))
    low, high = RATES[optimizer]
    rates = torch.exp(torch.linspace(math.log(low), math.log(high), num_trials))
    sizes = [data.inputs.shape[1], *widths, int(data.labels.max()) + 1]
    stack = Stack(sizes, optimizer, rates, generator)
    rows: list[list[list[object]]] = [[] for _ in range(num_trials)]
    found: list[list[Look]] = [[] for _ in range(num_trials)]
    when = {round(NUM_STEPS ** (k / (NUM_LOOKS - 1))) for k in range(NUM_LOOKS)}
    for step in range(1, NUM_STEPS + 1):
        chosen = torch.randint(len(data.inputs), (num_trials, batch), generator=generator)
        outs = stack.forward(data.inputs[chosen])[1]
        losses = stack.losses(outs[-1], data.labels[chosen]).mean(1)
        gradients = torch.autograd.grad(losses.sum(), stack.parameters)
        norms = torch.sqrt(sum(one.square().sum((1, 2)) for one in gradients))
        evaluated = _evaluated(stack, data) if step in when else ["", ""]
        if step in when:
            for trial, look in enumerate(stack.look(data)):
                found[trial].append(look)
        for trial in range(num_trials):
            own = [one[trial] if step in when else "" for one in evaluated]
            rows[trial].append([step, losses[trial].item(), norms[trial].item(), *own])
        stack.step(gradients)
    looks[name, batch] = found
    _write_study(folder / name / str(batch), batch, optimizer, rates.tolist(), rows)


def _evaluated(stack: Stack, data: Data) -> list[list[float]]:
    with torch.no_grad():
        count = stack.weights[0].shape[0]
        outs = stack.forward(data.held_out.expand(count, -1, -1))[1][-1]
        losses = stack.losses(outs, data.held_out_labels.expand(count, -1)).mean(1)
        wrong = (outs.argmax(2) != data.held_out_labels).double().mean(1)
    return [losses.tolist(), wrong.tolist()]


def _write_study(
    folder: Path, batch: int, optimizer: str, rates: Sequence[float], rows: Sequence[list[list[object]]]
) -> None:
    folder.mkdir(parents=True)
    study = {"batch_size": batch, "dataset": "digits", "model": "mlp", "optimizer": optimizer, "train_steps": NUM_STEPS}
    (folder / "study.json").write_text(json.dumps(study))
    header = ["step", "train/cross_entropy_error", "grad_norm", "val/cross_entropy_error", "val/classification_error"]
    for trial, (rate, own) in enumerate(zip(rates, rows, strict=True)):
        (folder / str(trial)).mkdir()
        facts = {"parameters": {"learning_rate": rate}, "status": "COMPLETE", "steps": NUM_STEPS, "trial_id": trial}
        (folder / str(trial) / "metadata.json").write_text(json.dumps(facts))
        lines = [",".join(map(str, row)) for row in (header, *own)]
        (folder / str(trial) / "measurements.csv").write_text("\n".join(lines) + "\n")


def summaries(folder: Path) -> Iterator[Summary]:
    """As the command fills them, without a server."""
    wishes = Wishes(kind="shallue", project="digits", flags={})
    for run in importer.find([str(folder)], {}):
        if isinstance(run, Damage):
            raise RuntimeError(run.reason)
        one = prepare(head_of(run), wishes)
        summary = summary_of(one, wishes)
        for _ in summary.watch(Assembly(one.reading(), has_single_values=False, is_over=True).items(run.rows())):
            pass
        yield summary


def within(looks: Sequence[list[Look]], loss: float) -> float:
    """The exact noise scale where runs pass a loss, the median over runs."""
    found = []
    for run in looks:
        for (high, noise, signal), (low, later_noise, later_signal) in pairwise(run):
            if low <= loss <= high:
                share = (math.log(high) - math.log(loss)) / max(1e-12, math.log(high) - math.log(low))
                first, last = math.log(noise / signal), math.log(later_noise / later_signal)
                found.append(math.exp(first + share * (last - first)))
                break
    return median(found) if found else math.nan


@dataclass(frozen=True, slots=True)
class Asked:
    """The noise scale between runs at one loss, and the exact one of the runs with the largest batch there."""

    task: str
    found: AtLoss
    exact: float

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds the exact one."""
        low, high = self.found.estimate.low or 0.0, self.found.estimate.high or math.inf
        return low <= self.exact <= high

    @property
    def ratio(self) -> float | None:
        """Between over within; None where there is no value."""
        value = self.found.estimate.value
        return None if value is None else value / self.exact


@dataclass(frozen=True, slots=True)
class Database:
    """Runs of a family of tasks that were trained and read."""

    of_task: dict[str, list[Summary]]
    looks: dict[tuple[str, int], list[list[Look]]]
    seconds_trained: float
    seconds_read: float

    def asked(self) -> list[Asked]:
        """Every loss of every workload."""
        return [
            Asked(task, one, exact)
            for task, runs in self.of_task.items()
            for one in noise_scales(runs)
            if math.isfinite(exact := within(self.looks[task, round(max(one.batch_sizes))], one.loss))
        ]


def database(
    data: Data, seed: int, all_widths: Sequence[Sequence[int]] = WIDTHS, num_trials: int = NUM_TRIALS
) -> Database:
    """Train all workloads of a family, and read what they wrote."""
    looks: dict[tuple[str, int], list[list[Look]]] = {}
    of_task: dict[str, list[Summary]] = {}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for widths in all_widths:
            for optimizer in OPTIMIZERS:
                for batch in BATCHES:
                    train(folder, data, widths, optimizer, batch, looks, seed, num_trials)
        trained = time.perf_counter() - start
        for summary in summaries(folder):
            of_task.setdefault(summary.task, []).append(summary)
    return Database(of_task, looks, trained, time.perf_counter() - start - trained)


def measure() -> list[Figure]:
    """The family on which the estimator was made, workload by workload and together."""
    torch.set_num_threads(1)  # the tensors are small: two threads mostly wait for each other
    found = database(digits(), DESIGN_SEED)
    asked = found.asked()
    return [
        *summed("", asked, ">= 0.9"),
        Figure("runs trained", sum(map(len, found.of_task.values())), "runs"),
        Figure("seconds of training", found.seconds_trained, "s"),
        Figure("seconds of reading", found.seconds_read, "s"),
        *(_of_workload(task, [one for one in asked if one.task == task]) for task in found.of_task),
    ]


def _of_workload(task: str, asked: Sequence[Asked]) -> Figure:
    ratios = [one.ratio for one in asked if one.ratio is not None]
    return Figure(f"{task}: between to within, median over losses", median(ratios) if ratios else math.nan, "")


def summed(before: str, asked: Sequence[Asked], target: str) -> list[Figure]:
    """Ratio, spread and coverage over the losses of several workloads."""
    ratios = [one.ratio for one in asked if one.ratio is not None]
    spread = float(np.std(np.log(ratios))) if len(ratios) > 1 else math.nan
    inside = sum(one.is_inside for one in asked) / max(1, len(asked))
    return [
        Figure(f"{before}between to within, median", median(ratios) if ratios else math.nan, ""),
        Figure(f"{before}between to within, spread (sd of the logarithm)", spread, ""),
        Figure(f"{before}within lies in the interval of between", inside, "", target),
        Figure(f"{before}losses that were asked", len(asked), "losses"),
        Figure(f"{before}losses with a value", len(ratios) / max(1, len(asked)), ""),
    ]


if __name__ == "__main__":
    write("between_runs", measure())
