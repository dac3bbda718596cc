"""What the runs of `make demo` are told at their end, held against a sweep of their task. Writes results/demo.csv.

Each task is trained anew at batch sizes an octave or two apart with its learning rate tuned at each, to the evaluation
loss that both of its demo runs reach; the fit of the tuned steps is the truth. `--smoke` sweeps one task in short.
"""

import math
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import torch

import noisescale
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from demo import characters, digits
from demo.tasks import Task
from demo.train import PLANS, Plan, train
from noisescale.ask.recommendation import Recommendation
from noisescale_core.advice.decision import KEEP_REGRET
from noisescale_core.advice.words.of_the_rate import SET_FIRST
from noisescale_core.theory.trade_off import regret_at_price
from noisescale_lab.reproduce.advice.sweep import fit

TASKS = {"digits": digits.make_task, "characters": characters.make_task}
BATCHES = {"digits": (8, 16, 32, 64, 128, 256, 512, 1024, 2048), "characters": (4, 8, 16, 32, 64, 128, 256)}
FIRST_RATE = {"digits": 0.5, "characters": 4e-3}
"""Of the middle of the batch sizes; from there the search climbs by √2."""

SEEDS = (0,) if IS_SMOKE else (0, 1)
MOST_STEPS = 200 if IS_SMOKE else 6_000
FAR = 4
"""Best rate over the present one from which a batch is told after the rate; no demo run has a rate that is too high."""

EVALUATIONS = 1.04
"""Steps from one evaluation to the next."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a demo run was told at its last step.

    Attributes:
        plan: The run.
        answer: What it was told.
        loss: Its evaluation loss then.
    """

    plan: Plan
    answer: Recommendation
    loss: float


def told(task: Task, plan: Plan) -> Told:
    """Train a demo run, and ask at its last step."""
    answers: list[Recommendation] = []
    losses: list[float] = []
    evaluate = task.evaluate

    def on_step(step: int, _: float) -> None:
        if step == plan.steps - 1:
            answers.append(noisescale.recommendation())
            losses.append(evaluate(models[-1]))

    models: list[torch.nn.Module] = []
    kept = _keeping(task, models)
    train(kept, plan, on_step)
    return Told(plan, answers[0], losses[0])


def _keeping(task: Task, models: list[torch.nn.Module]) -> Task:
    """The task, whose models are at hand."""

    def make_model() -> torch.nn.Module:
        models.append(task.make_model())
        return models[-1]

    return replace(task, make_model=make_model)


def steps_to(task: Task, batch: int, rate: float, seed: int, target: float, limit: float) -> float:
    """Steps to the target, on the line of log loss between evaluations; infinite beyond the limit."""
    torch.manual_seed(seed)
    generator, model = torch.Generator().manual_seed(seed + 100), task.make_model()
    optimizer = task.make_optimizer(model, rate)
    step, before, next_look = 0, (0, task.evaluate(model)), 1.0
    while step < limit:
        loss = task.loss(model, task.sample(batch, generator))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step >= next_look:
            now = task.evaluate(model)
            if not math.isfinite(now):
                return math.inf
            if now <= target:
                share = math.log(before[1] / target) / math.log(before[1] / now)
                return before[0] + share * (step - before[0])
            before, next_look = (step, now), max(step + 1, step * EVALUATIONS)
    return math.inf


def tuned(task: Task, batch: int, first: float, target: float) -> tuple[float, float]:
    """Mean steps at the best learning rate of a grid of √2, climbed from the first; and that rate."""
    known: dict[int, float] = {}

    def look(place: int) -> float:
        if place not in known:
            limit = min([MOST_STEPS, *(1.3 * one for one in known.values())])
            found = [steps_to(task, batch, first * 2 ** (place / 2), seed, target, limit) for seed in SEEDS]
            known[place] = sum(found) / len(found)
        return known[place]

    best = 0
    for _ in range(12):
        around = min((best - 1, best, best + 1), key=look)
        if around == best and math.isfinite(look(best)):
            break
        best = around if around != best else best - 1
    return look(best), first * 2 ** (best / 2)


def swept(task: Task, target: float) -> tuple[float, dict[int, float]]:
    """B_crit of the task's sweep to the target, and the best learning rate at each of its batch sizes."""
    points, rates, rate = [], dict[int, float](), FIRST_RATE[task.name]
    for batch in BATCHES[task.name][:: 3 if IS_SMOKE else 1]:
        steps, found = tuned(task, batch, rate, target)
        print(f"  {task.name} {batch}: {steps:.1f} steps at {found:.3g}", flush=True)
        if math.isfinite(steps):
            points.append((batch, steps))
            rates[batch] = rate = found
    return fit(points)[1], rates


def figures() -> Iterator[Figure]:
    """Each task by itself, then how many runs were told right."""
    num_right = num_answered = 0
    for name, plans in groupby(PLANS[:2] if IS_SMOKE else PLANS, key=lambda plan: plan.task):
        task = TASKS[name]()
        runs = [told(task, plan.scaled(0.2 if IS_SMOKE else 1)) for plan in plans]
        target = max(run.loss for run in runs)
        critical, rates = swept(task, target)
        yield Figure(f"{name}: target", target, "nats")
        yield Figure(f"{name}: critical batch of the sweep", critical, f"{task.example}s")
        for run in runs:
            now, answer = run.plan.batch_size, run.answer
            if answer.headline == SET_FIRST:
                off = rates[min(rates, key=lambda batch: abs(math.log(batch / now)))] / run.plan.learning_rate
                num_answered, num_right = num_answered + 1, num_right + (off > FAR)
                yield Figure(f"{run.plan.name}: {answer.headline}. {answer.short_reason} The best one is", off, "times")
                continue
            said = answer.recommended_batch_size
            kept = regret_at_price(batch=now, critical_batch=critical, examples_per_step=critical)
            if said is None or answer.decision == "keep_for_now":
                continue
            regret = regret_at_price(batch=said, critical_batch=critical, examples_per_step=critical)
            is_right = kept <= KEEP_REGRET if answer.decision == "keep" else regret < kept
            num_answered, num_right = num_answered + 1, num_right + is_right
            probability = float("nan") if answer.odds is None else answer.odds.probability
            yield Figure(f"{run.plan.name}: {answer.headline}", said, f"{task.example}s")
            yield Figure(f"{run.plan.name}: probability that it is cheaper", 100 * probability, "%")
            yield Figure(f"{run.plan.name}: costs more than the best batch", 100 * regret, "%")
            yield Figure(f"{run.plan.name}: the present batch does", 100 * kept, "%")
    yield Figure("runs with an answer", num_answered, "of 4", "at least 3")
    yield Figure("right by the sweep of their task", num_right, "of 4", "at least 3")


if __name__ == "__main__":
    os.environ |= {"NOISESCALE_MODE": "offline", "NOISESCALE_DIR": tempfile.mkdtemp(prefix="noisescale-demo-")}
    torch.set_num_threads(1)
    write("demo", list(figures()), command="python benchmarks/policies/benchmark_demo.py")
