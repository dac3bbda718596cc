"""A batch size that follows the noise scale, against the tuned constant one nearest B_crit: reported, not judged.

The schedule is made from the noise scale along the constant run, so it knows its future. What it can save is small:
the theory's own prediction stands beside.

Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D: B = √(r φ), with r = B_crit, one step's worth in examples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from noisescale_lab.reproduce.claim.stacked_trial import SharedStream
from noisescale_lab.reproduce.claim.task_result import AdaptiveBatch, TunedRun
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, advance, evaluate
from noisescale_lab.sweep.trial import Curve, steps_to_target

LONGEST = 2.0
"""The last stage goes on for so much longer than foreseen, until the target is met."""

LOOKS = 4
"""Evaluations of a stage."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps with one batch size and learning rate."""

    steps: int
    batch: int
    lr: float


def adaptive_batch(task: Task, run: TunedRun, critical_batch: float, seeds: Sequence[int]) -> AdaptiveBatch | None:
    """The comparison; None where the constant run has no noise scale to follow.

    Args:
        task: What is trained.
        run: The tuned run nearest B_crit.
        critical_batch: Of the hardest target, examples.
        seeds: Those of the constant run.
    """
    stages = _stages(task, run, critical_batch)
    constant = run.steps[-1]
    if len(stages) < 2 or constant is None:
        return None
    own_cost = constant * (1 + run.batch / critical_batch)
    foreseen = sum(stage.steps * (1 + stage.batch / critical_batch) for stage in stages)
    curve, examples = _train(task, stages, list(seeds))
    crossed = steps_to_target(curve, task.targets[-1], task.goal).steps
    measured = None
    if crossed is not None:
        measured = (crossed + float(np.interp(crossed, curve.steps, examples)) / critical_batch) / own_cost
    batches = [stage.batch for stage in stages]
    return AdaptiveBatch(min(batches), max(batches), foreseen / own_cost, measured)


def _stages(task: Task, run: TunedRun, price: float) -> list[Stage]:
    """One a span: as much ideal progress as the constant run made there, at the batch size that is best for it."""
    stages = []
    for span in run.spans:
        if span.value is None:
            continue
        batch = max(1, round(math.sqrt(price * span.value)))
        stretched = (1 + span.value / batch) / (1 + span.value / run.batch)
        rate = 1 / stretched if task.optimizer.name == "sgd" else math.sqrt(batch / run.batch)
        stages.append(Stage(max(1, round(span.num_steps * stretched)), batch, run.lr * rate))
    return stages


def _train(task: Task, stages: Sequence[Stage], seeds: list[int]) -> tuple[Curve, list[int]]:
    """The metric averaged over seeds, and examples of one seed at each evaluation."""
    stream, replicas = SharedStream(), Replicas.new(task, seeds)
    last = stages[-1]
    total = sum(stage.steps for stage in stages)
    pieces = [piece for stage in stages for piece in _pieces(stage)]
    pieces += _pieces(Stage(max(1, round((LONGEST - 1) * total)), last.batch, last.lr), looks=10 * LOOKS)
    values, done = [float(evaluate(task, replicas.parameters).mean())], [Stage(0, 0, 0.0)]
    for piece in pieces:
        rates = [piece.lr] * len(seeds)
        advance(task, stream, replicas, seeds=seeds, learning_rate=rates, batch=piece.batch, steps=piece.steps)
        values.append(float(evaluate(task, replicas.parameters).mean()))
        done.append(piece)
        if not math.isfinite(values[-1]) or (values[-1] <= task.targets[-1]) == (task.goal == "min"):
            break
    steps = tuple(accumulate(piece.steps for piece in done))
    return Curve(-1, steps, tuple(values)), list(accumulate(piece.steps * piece.batch for piece in done))


def _pieces(stage: Stage, looks: int = LOOKS) -> list[Stage]:
    edges = np.linspace(0, stage.steps, min(looks, stage.steps) + 1).round().astype(int)
    return [Stage(int(steps), stage.batch, stage.lr) for steps in np.diff(edges)]
