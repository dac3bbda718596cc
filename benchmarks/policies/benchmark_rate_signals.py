"""What else could tell a learning rate from one run? Writes results/rate_signals.csv.

    python benchmarks/policies/benchmark_rate_signals.py

Runs of the design tasks that keep what they have, at rates from a quarter to four times the best one: how far off
y = log₂(rate / best rate) is told by lines in what a run shows, each task by lines of the others. Beside the path ratio
and the share of the promised fall, which `follow` reads: how successive updates align, how much lower the loss is at
averaged weights, and a Hessian-vector product along the update. Last, successive halving: five rates from a quarter
to four times the present one are tried at once, and the worse half is dropped at each rung.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
import torch
from torch import Tensor

from benchmarks.policies.fit_rate_lines import BATCHES, RATES, REFERENCES, looks
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale_core.advice.learning_rate.rate_coefficients import family_of
from noisescale_core.estimators.path import Path as ParameterPath
from noisescale_core.estimators.path import path_ratio
from noisescale_lab.follow.walk import Span, kept_promise
from noisescale_lab.reproduce.advice.sweep import PLAN, Reference, complete
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, BY_OTHER_OPTIMIZERS, DESIGN, EVERY
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, evaluate, train

SEEDS = (20, 21)
SHARES = (0.06, 0.12, 0.25, 0.5)
ALIGNED = 16
"""Steps of a copy whose updates are compared with the next."""

REACH = 1e-3
"""Of the length of the parameters: how far a difference of gradients reaches."""

FLATTEST = 2.0**-10
"""Rate × curvature below which, and where it is negative, it counts as this."""

STARTS = (1 / 4, 1 / 2, 1.0, 2.0, 4.0)
TRIED = (1 / 4, 1 / 2, 1.0, 2.0, 4.0)
WIDER = tuple(sorted({start * factor for start, factor in product(STARTS, TRIED)}))
RUNGS, KEPT = (0.015, 0.03, 0.06), (3, 2, 1)
"""Shares of the plan, and how many go on from each."""

SIGNALS = ("path", "promise", "alignment", "averaged weights", "curvature")
SETS = (
    ("path",), ("path", "promise"), ("path", "alignment"), ("path", "averaged weights"), ("path", "curvature"),
    ("curvature",), ("path", "promise", "alignment"), ("path", "promise", "averaged weights"),
    ("path", "promise", "curvature"), SIGNALS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run shows at a share of its plan, and how far its rate is off in octaves; NaN where it shows nothing."""

    task: str
    family: str
    share: float
    octaves: float
    signals: dict[str, float]


def seen(task: Task, reference: Reference, batch_factor: float) -> Iterator[Seen]:
    """All rates and seeds at one batch."""
    tuned = reference.nearest(reference.best.batch * batch_factor)
    planned, cells = PLAN * tuned.steps, list(product(RATES, SEEDS))
    seeds = [seed for _, seed in cells]
    replicas, stream = Replicas.new(task, seeds), RandomStream()
    origin, sums, first = replicas.parameters.clone(), np.zeros(len(cells)), evaluate(task, replicas.parameters)
    spans: list[list[Span]] = [[] for _ in cells]
    edges = looks(round(planned))
    ends = {min(edges, key=lambda edge: abs(edge - max(2, share * planned))): share for share in SHARES}
    rates = [tuned.learning_rate * factor for factor, _ in cells]
    how = {"seeds": seeds, "learning_rate": rates, "batch": tuned.batch}
    done = 0
    for edge in edges:
        record = train(task, stream, replicas, steps=edge - done, wants_average=True, **how)  # type: ignore[arg-type]
        sums += record.update_sq_norm.sum(0)
        for row in range(len(cells)):
            losses = record.loss[:, row]
            error = float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else math.inf
            spans[row].append(Span(edge - done, float(losses.mean()), error, float(record.promised[:, row].sum())))
        done = edge
        if done not in ends:
            continue
        distances = (replicas.parameters - origin).double().square().sum(1).tolist()
        momentum = task.optimizer.momentum
        family = family_of(task.optimizer.class_name, momentum)
        assert family is not None
        assert record.average is not None
        now = evaluate(task, replicas.parameters)
        averaged = (now - evaluate(task, record.average)) / np.abs(first - now)
        alone = alignment(task, stream, replicas, how)
        curved = curvature(task, replicas, torch.tensor(rates))
        for row, (factor, _) in enumerate(cells):
            measured = path_ratio(ParameterPath(done, float(sums[row]), 0.0, distances[row], momentum))
            promise = kept_promise(spans[row])
            signals = {
                "path": math.nan if measured is None else measured.value,
                "promise": math.nan if promise is None else promise,
                "alignment": alone[row],
                "averaged weights": float(np.clip(averaged[row], -1, 1)),
                "curvature": curved[row],
            }
            yield Seen(task.name, family, ends[done], math.log2(factor), signals)


def alignment(task: Task, stream: RandomStream, replicas: Replicas, how: dict[str, object]) -> list[float]:
    """Σ u_t · u_(t+1) ÷ Σ |u_t|² over some steps of a copy, of each replica."""
    copy = Replicas.gather([replicas.take(row) for row in range(len(replicas.parameters))])
    products, squares, last = torch.zeros(len(copy.parameters)), torch.zeros(len(copy.parameters)), None
    for _ in range(ALIGNED):
        before = copy.parameters.clone()
        train(task, stream, copy, steps=1, **how)  # type: ignore[arg-type]
        update = copy.parameters - before
        if last is not None:
            products += (last * update).sum(1)
            squares += last.square().sum(1)
        last = update
    return (products / squares).tolist()


@torch.no_grad()
def curvature(task: Task, replicas: Replicas, rates: Tensor) -> list[float]:
    """Log₂(rate · dᵀHd ÷ dᵀG), d the direction of the mean update: the rate over the best one of a single step."""
    gradient = mean_gradient(task, replicas.parameters)
    direction = gradient
    if task.optimizer.name == "adam":
        corrected = replicas.states[1] / (1 - task.optimizer.beta2 ** replicas.num_updates[:, None])
        direction = gradient / (corrected.sqrt() + task.optimizer.epsilon)
    reach = REACH * replicas.parameters.norm(dim=1, keepdim=True) / direction.norm(dim=1, keepdim=True)
    ahead, behind = (mean_gradient(task, replicas.parameters + sign * reach * direction) for sign in (1, -1))
    bent = (direction * (ahead - behind)).sum(1) / (2 * reach[:, 0])
    held = 1 - task.optimizer.momentum if task.optimizer.name == "momentum" else 1.0
    return (rates * bent / (held * (direction * gradient).sum(1))).clamp(min=FLATTEST).log2().tolist()


def mean_gradient(task: Task, parameters: Tensor) -> Tensor:
    """Of the evaluation examples, [R, P]."""
    found = []
    inputs, targets = task.evaluation
    for one in parameters.split(1):
        values = task.network.forward(one, inputs)
        _, derivatives = task.loss(values[-1], targets)
        found.append(task.network.backward(one, inputs, values, derivatives, wants_norms=False).mean.view(1, -1))
    return torch.cat(found)


def halved(task: Task, reference: Reference, batch_factor: float) -> Iterator[float]:
    """Octaves that the rate is off which successive halving ends with, of each start and seed at one batch."""
    tuned = reference.nearest(reference.best.batch * batch_factor)
    planned, cells = PLAN * tuned.steps, list(product(WIDER, SEEDS))
    seeds, rates = [seed for _, seed in cells], [tuned.learning_rate * factor for factor, _ in cells]
    replicas, stream, done = Replicas.new(task, seeds), RandomStream(), 0
    at_rung: list[dict[tuple[float, int], float]] = []
    for rung in RUNGS:
        steps = max(2, round(rung * planned)) - done
        if steps > 0:
            record = train(task, stream, replicas, seeds=seeds, learning_rate=rates, batch=tuned.batch, steps=steps)
            loss = np.nan_to_num(record.loss[steps // 2 :].mean(0), nan=math.inf)
            done += steps
        at_rung.append(dict(zip(cells, loss.tolist(), strict=True)))
    for start, seed in product(STARTS, SEEDS):
        left = [start * factor for factor in TRIED]
        for losses, keep in zip(at_rung, KEPT, strict=True):
            left = sorted(left, key=lambda factor: losses[factor, seed])[:keep]
        yield math.log2(left[0])


def off(some: Sequence[Seen], names: Sequence[str]) -> tuple[float, int]:
    """Root mean square of y less what lines of the other tasks tell, in octaves, and of how many runs."""
    known = [one for one in some if all(math.isfinite(one.signals[name]) for name in SIGNALS)]
    tasks = sorted({one.task for one in known})
    errors: list[float] = []
    for task in tasks:
        others, own = [one for one in known if one.task != task], [one for one in known if one.task == task]
        design, octaves = _design(others, names)
        tested, true = _design(own, names)
        errors += (true - tested @ np.linalg.lstsq(design, octaves, rcond=None)[0]).tolist()
    return math.sqrt(sum(error * error for error in errors) / max(1, len(errors))), len(errors)


def _design(some: Sequence[Seen], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = [[1.0, *(one.signals[name] for name in names)] for one in some]
    return np.array(rows), np.array([one.octaves for one in some])


def tasks_and_references() -> tuple[list[Task], dict[str, Reference]]:
    """The design tasks whose loss is that of fixed examples."""
    of_design = [name for name in ADVICE_TARGETS if name in DESIGN] + list(BY_OTHER_OPTIMIZERS)
    tasks = [EVERY[name]() for name in of_design]
    plain = [task for task in tasks if task.metric is None and task.carried is None]
    return plain[:2] if IS_SMOKE else plain, complete(REFERENCES, of_design)


def all_seen(tasks: Sequence[Task], references: dict[str, Reference]) -> list[Seen]:
    """What runs of these tasks show."""
    found: list[Seen] = []
    for task in tasks:
        for batch_factor in BATCHES[1:2] if IS_SMOKE else BATCHES:
            found += seen(task, references[task.name], batch_factor)
        print(f"{task.name}: {len(found)}", flush=True)
    return found


def figures_of_halving(tasks: Sequence[Task], references: dict[str, Reference]) -> Iterator[Figure]:
    """How far off it ends, and what it takes: of each family."""
    found: dict[str, list[float]] = {}
    for task, batch_factor in product(tasks, BATCHES[1:2] if IS_SMOKE else BATCHES):
        family = family_of(task.optimizer.class_name, task.optimizer.momentum)
        assert family is not None
        found.setdefault(family, []).extend(halved(task, references[task.name], batch_factor))
    lengths = np.diff([0.0, *RUNGS])
    spent = float((np.array([len(TRIED), *KEPT[:-1]]) * lengths).sum() - RUNGS[-1])
    for family, octaves in found.items():
        error = math.sqrt(sum(one * one for one in octaves) / len(octaves))
        yield Figure(
            f"{family}, successive halving, until {RUNGS[-1]:.0%} of the plan", error, f"octaves, {len(octaves)} runs"
        )
    yield Figure("successive halving: thrown away", 100 * spent, "% of the plan")


def figures_of(found: Sequence[Seen]) -> Iterator[Figure]:
    """How far off each set of signals is."""
    for family, share in product(dict.fromkeys(one.family for one in found), SHARES):
        some = [one for one in found if (one.family, one.share) == (family, share)]
        if len({one.task for one in some}) < 2:
            continue
        for names in SETS:
            error, count = off(some, names)
            told = " + ".join(names) if names != SIGNALS else "all"
            yield Figure(f"{family}, at {share:.0%} of the plan, by {told}", error, f"octaves, {count} runs")


def main() -> None:
    """Train, fit, print and write."""
    torch.set_num_threads(1)
    tasks, references = tasks_and_references()
    figures = [*figures_of(all_seen(tasks, references)), *figures_of_halving(tasks, references)]
    write("rate_signals", figures, command=f"python benchmarks/policies/{Path(__file__).name}")


if __name__ == "__main__":
    main()
