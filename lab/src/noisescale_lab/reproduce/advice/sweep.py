"""The answer that policies never see: the cost of the best constant batch size, its learning rate tuned at each batch.

Costs are for a price r, examples per step; at r = B_crit steps and examples matter alike. A run costs r S + E, S its
steps and E its examples until the evaluation loss first meets the target.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from noisescale_lab.reproduce.registry import BY_OTHER_OPTIMIZERS, EVERY, LONG, PRICES, TARGETS
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Array, Replicas, evaluate, train

GRID_RATIO = 1.06
"""Steps from one evaluation to the next; log loss is interpolated between them."""

STOP_BEYOND = 1.3
"""Rates that take this much longer than the best one are given up."""

FEWEST_BATCHES = 5
"""A sweep with fewer is no answer to compare with."""

FLOOR_OF_DECAY = 0.1
"""A decaying learning rate falls along a line to this share of its start, reached at the end of the plan."""

PLAN = 1.5
"""A plan is so much longer than the tuned run at the same batch needs."""

COLUMNS = ("task", "target", "min_steps", "critical_batch", "batch", "learning_rate", "steps")
SEEDS, FEW_SEEDS, TWO_SEEDS = range(6), range(3), range(2)
"""Seeds of the sweeps; policies are replayed with others. Few: of long runs, and of tasks by other optimizers; two
where a sweep takes an hour."""


def decayed(progress: float) -> float:
    """Share of the peak learning rate at some progress through the plan."""
    return max(FLOOR_OF_DECAY, 1 - (1 - FLOOR_OF_DECAY) * progress)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best run at one batch size.

    Attributes:
        batch: B.
        learning_rate: The best one on a grid of √2.
        steps: Mean over seeds of the steps to the target.
    """

    batch: int
    learning_rate: float
    steps: float


@dataclass(frozen=True, slots=True)
class Reference:
    """A task's sweep over constant batch sizes.

    Attributes:
        name: The task's.
        target: Evaluation loss.
        tuned: One a batch size.
        min_steps: S_min of the fit.
        critical_batch: B_crit of the fit.
        price_factor: The price r over B_crit; 1 where steps and examples matter alike.
    """

    name: str
    target: float
    tuned: tuple[Tuned, ...]
    min_steps: float
    critical_batch: float
    price_factor: float = 1.0

    @property
    def price(self) -> float:
        """Price r of a step, in examples."""
        return self.price_factor * self.critical_batch

    def cost(self, tuned: Tuned) -> float:
        """Cost r S + E of a tuned run, in examples."""
        return tuned.steps * (self.price + tuned.batch)

    @property
    def best(self) -> Tuned:
        """The tuned run that costs least."""
        return min(self.tuned, key=self.cost)

    def nearest(self, batch: float) -> Tuned:
        """The tuned run whose batch size is nearest on the log scale."""
        return min(self.tuned, key=lambda tuned: abs(math.log(tuned.batch / batch)))


def steps_to_target(
    task: Task,
    target: float,
    *,
    batch: int,
    rates: Sequence[float],
    seeds: Sequence[int],
    limit: int,
    planned_steps: float | None = None,
) -> Array:
    """Mean over seeds of the steps to the target for each rate; infinite where a seed does not arrive in time.

    Args:
        task: The task.
        target: Evaluation loss.
        batch: B.
        rates: Learning rates.
        seeds: Each rate is run with every seed.
        limit: Steps after which all is given up.
        planned_steps: With it the learning rate decays over so many steps.
    """
    stream = RandomStream()
    cells = [(rate, seed) for rate in range(len(rates)) for seed in seeds]
    replicas = Replicas.new(task, [seed for _, seed in cells])
    crossed = np.full((len(rates), len(seeds)), np.nan)
    alive, before = list(range(len(cells))), evaluate(task, replicas.parameters)
    done, best = 0, math.inf
    while alive and done < min(limit, STOP_BEYOND * best):
        steps = max(1, int(done * (GRID_RATIO - 1)))
        factor = decayed((done + steps / 2) / planned_steps) if planned_steps else 1.0
        train(
            task,
            stream,
            replicas,
            seeds=[cells[i][1] for i in alive],
            learning_rate=[rates[cells[i][0]] * factor for i in alive],
            batch=batch,
            steps=steps,
        )
        after = evaluate(task, replicas.parameters)
        for row, cell in enumerate(alive):
            if after[row] <= target:
                share = math.log(before[row] / target) / math.log(before[row] / after[row]) if after[row] > 0 else 1.0
                crossed[cell // len(seeds), cell % len(seeds)] = done + steps * min(1.0, max(0.0, share))
        kept = [row for row in range(len(alive)) if target < after[row] < 1e6]
        alive, before, done = [alive[row] for row in kept], after[kept], done + steps
        if len(kept) < len(replicas.parameters):
            replicas = Replicas.gather([replicas.take(row) for row in kept]) if kept else replicas
        best = min(best, *(crossed.mean(1)[~np.isnan(crossed.mean(1))].tolist() or [math.inf]))
    return np.where(np.isnan(crossed).any(1), math.inf, crossed.mean(1))


def tune(
    task: Task,
    target: float,
    *,
    batch: int,
    guess: float,
    seeds: Sequence[int],
    limit: int,
    coarse: bool = False,
    planned_steps: float | None = None,
) -> Tuned:
    """The best learning rate at a batch size: a grid of 2, extended while the best is at an edge, then of √2."""
    found: dict[float, float] = {}

    def look(exponents: Sequence[float]) -> float:
        new = [e for e in exponents if e not in found]
        if new:
            rates = [guess * 2**e for e in new]
            steps = steps_to_target(
                task, target, batch=batch, rates=rates, seeds=seeds, limit=limit, planned_steps=planned_steps
            )
            found.update(zip(new, steps.tolist(), strict=True))
        return min(found, key=lambda e: (found[e], abs(e)))

    best = look(range(-6, 7, 2) if coarse else (-1.0, 0.0, 1.0))
    while math.isfinite(found[best]) and best in (min(found), max(found)):
        best = look((best - 1, best + 1))
    best = look((best - 1, best + 1))
    best = look((best - 0.5, best + 0.5))
    return Tuned(batch, guess * 2**best, found[best])


def sweep(
    task: Task, target: float, *, seeds: Sequence[int], price: float = 1.0, middle: int = 32, widest: int = 4096
) -> Reference:
    """Tuned runs at powers of two on both sides of the best batch, and the fit of S = S_min (1 + B_crit / B).

    Args:
        task: The task.
        target: Evaluation loss.
        seeds: Of weights and examples.
        price: r over B_crit; the batch of least cost is the root of r B_crit.
        middle: The first batch.
        widest: The largest.

    Raises:
        ValueError: If too few batch sizes meet the target.
    """
    step_factor = 2.0 if task.optimizer.class_name == "SGD" else math.sqrt(2)
    runs = {middle: tune(task, target, batch=middle, guess=0.05, seeds=seeds, limit=20_000, coarse=True)}
    while True:
        fitted = fit([(run.batch, run.steps) for run in runs.values()]) if len(runs) > 2 else None
        low, high = min(runs), max(runs)
        best = (fitted[1] if fitted else float(middle)) * math.sqrt(price)
        wants_lower = low > 2 and (fitted is None or low > best / 10) and math.isfinite(runs[low].steps)
        wants_higher = high < widest and (fitted is None or high < best * 8) and math.isfinite(runs[high].steps)
        if not (wants_lower or wants_higher):
            break
        for batch, neighbour in ((low // 2, runs[low]), (high * 2, runs[high])):
            if wants_lower if batch < low else wants_higher:
                is_lower = batch < low
                guess = neighbour.learning_rate * (1 / step_factor if is_lower else step_factor)
                limit = int(neighbour.steps * (4 if is_lower else 2)) + 20
                runs[batch] = tune(task, target, batch=batch, guess=guess, seeds=seeds, limit=limit)
    reached = [run for _, run in sorted(runs.items()) if math.isfinite(run.steps)]
    if len(reached) < FEWEST_BATCHES:
        raise ValueError(
            f"target {target:g} of {task.name} was met at {len(reached)} batch sizes only: choose an easier one"
        )
    min_steps, critical = fit([(run.batch, run.steps) for run in reached])
    return Reference(task.name, target, tuple(reached), min_steps, critical)


def fit(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """S_min and B_crit by least squares in log S.

    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11, fitted in log space.
    """
    batch, steps = (
        np.array(column, dtype=float) for column in zip(*[p for p in points if math.isfinite(p[1])], strict=True)
    )
    candidates = np.geomspace(batch.min() / 10, batch.max() * 10, 2001)
    residual = np.log(steps) - np.log1p(candidates[:, None] / batch)
    row = int(residual.var(1).argmin())
    return float(np.exp(residual[row].mean())), float(candidates[row])


# Writes and reads the sweeps' answers as CSV, one row a tuned run.


def read(file: Path) -> dict[str, Reference]:
    """What has been swept so far."""
    if not file.exists():
        return {}
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    found = {}
    for name, group in groupby(rows, key=lambda row: row["task"]):
        of_task = list(group)
        tuned = tuple(Tuned(int(r["batch"]), float(r["learning_rate"]), float(r["steps"])) for r in of_task)
        first = of_task[0]
        found[name] = Reference(
            name, float(first["target"]), tuned, float(first["min_steps"]), float(first["critical_batch"])
        )
    return found


def write(file: Path, references: dict[str, Reference]) -> None:
    """All references, in the order of the registry."""
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(COLUMNS)
        for name in EVERY:
            if name in references:
                found = references[name]
                for tuned in found.tuned:
                    shared = (name, found.target, f"{found.min_steps:.5g}", f"{found.critical_batch:.5g}")
                    rows.writerow([*shared, tuned.batch, f"{tuned.learning_rate:.6g}", f"{tuned.steps:.5g}"])


def complete(file: Path, names: Sequence[str], seeds: Sequence[int] | None = None) -> dict[str, Reference]:
    """References of these tasks; what is missing is swept and written at once.

    Args:
        file: Where they are.
        names: Of the tasks.
        seeds: Of the sweeps; None: as the task has them.
    """
    found = read(file)
    for name in names:
        if name not in found:
            usual = FEW_SEEDS if name in LONG or name in BY_OTHER_OPTIMIZERS else SEEDS
            usual = TWO_SEEDS if name in PRICES else usual
            price = PRICES.get(name, 1.0)
            found[name] = sweep(EVERY[name](), TARGETS[name], seeds=usual if seeds is None else seeds, price=price)
            write(file, found)
    return found
