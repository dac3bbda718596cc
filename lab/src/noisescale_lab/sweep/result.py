"""What a sweep found, and as a table to print."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisescale_lab.sweep.crossing import StepsToTarget, steps_to_target
from noisescale_lab.sweep.fit_words import fit_lines
from noisescale_lab.sweep.question import Question
from noisescale_lab.sweep.trial import Trial


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The best learning rate at one batch size, for one target.

    Attributes:
        target: Value of the metric.
        batch_size: In examples.
        lr: The best learning rate of those tried.
        steps: To the target, of the metric averaged over the seeds.
        num_seeds: How many were averaged.
        is_at_grid_edge: The best rate was the smallest or largest tried, so steps may still be too many.
    """

    target: float
    batch_size: int
    lr: float
    steps: StepsToTarget
    num_seeds: int
    is_at_grid_edge: bool


@dataclass(frozen=True, slots=True)
class SweepCost:
    """What was spent on a sweep, resumed parts included.

    Attributes:
        num_runs: Trainings.
        steps: Optimizer steps of all.
        examples: Examples of all.
        seconds: Wall time of all.
    """

    num_runs: int
    steps: int
    examples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A finished sweep, or one that its budget ended; print it.

    Attributes:
        sweep_id: UUID, in the server's addresses.
        question: What was asked.
        points: For each target, easy to hard, each batch size, rising, that had a training without divergence.
        trials: Everything that ran.
        cost: What it took.
        is_complete: Whether the budget sufficed.
        critical_batches: The server's answer for each target, as `GET …/critical-batch` gives it; empty without.
        without_fit: Why there is no fit; None where there is one.
    """

    sweep_id: str
    question: Question
    points: tuple[SweepPoint, ...]
    trials: tuple[Trial, ...]
    cost: SweepCost
    is_complete: bool
    critical_batches: tuple[Mapping[str, object], ...] = ()
    without_fit: str | None = None

    def __str__(self) -> str:
        lines = []
        for target in self.question.targets:
            lines += _table(target, [point for point in self.points if point.target == target], self.question)
            for found in self.critical_batches:
                lines += fit_lines(found) if found.get("target") == target else []
        if self.without_fit is not None:
            lines.append(self.without_fit)
        if not self.is_complete:
            lines.append("The budget ended the sweep: the same call with a larger one goes on where it stopped.")
        cost = self.cost
        lines.append(
            f"Cost: {cost.num_runs} runs, {cost.steps:,} steps, {cost.examples:,} examples, {cost.seconds:.1f} s."
        )
        return "\n".join(lines)


def points_of(question: Question, trials: Sequence[Trial]) -> tuple[SweepPoint, ...]:
    """The best trial for each target and batch size; nothing where every one diverged or none ran."""
    found = []
    for target in question.targets:
        for batch_size in sorted(question.batch_sizes):
            here = [trial for trial in trials if trial.setting.batch_size == batch_size]
            point = _point(target, here, question)
            found += [] if point is None else [point]
    return tuple(found)


def score(trial: Trial, question: Question) -> tuple[float, float]:
    """Steps to the hardest target, infinite if not reached; then how good the metric was at the end."""
    if trial.status == "infeasible":
        return math.inf, math.inf
    curve = trial.mean_curve()
    crossing = steps_to_target(curve, question.hardest, question.goal)
    last = question.sign * curve.values[-1] if curve.values else math.inf
    return math.inf if crossing.steps is None else crossing.steps, last


def cost_of(trials: Sequence[Trial]) -> SweepCost:
    """What trials took together."""
    return SweepCost(
        num_runs=sum(len(trial.curves) for trial in trials),
        steps=sum(trial.steps for trial in trials),
        examples=sum(trial.examples for trial in trials),
        seconds=math.fsum(trial.seconds for trial in trials),
    )


def _point(target: float, trials: Sequence[Trial], question: Question) -> SweepPoint | None:
    usable = [trial for trial in trials if trial.status != "infeasible" and trial.mean_curve().steps]
    if not usable:
        return None
    crossings = [(steps_to_target(trial.mean_curve(), target, question.goal), trial) for trial in usable]
    reached = [(found.steps, found, trial) for found, trial in crossings if found.steps is not None]
    if reached:
        _, steps, best = min(reached, key=lambda item: item[0])
    else:
        steps, best = min(crossings, key=lambda item: score(item[1], question))
    rates = [trial.setting.lr for trial in trials]
    is_at_edge = len(rates) > 1 and best.setting.lr in (min(rates), max(rates))
    return SweepPoint(target, best.setting.batch_size, best.setting.lr, steps, len(best.curves), is_at_edge)


def _table(target: float, points: Sequence[SweepPoint], question: Question) -> list[str]:
    metric = question.metric or "loss"
    head = f"Steps to {metric} {target:g}, averaged over {len(question.seeds)} seeds and then crossed"
    rows = [head, f"{'batch':>10}  {'learning rate':>13}  {'steps':>10}  {'seen between':>19}  {'examples':>14}"]
    for point in points:
        steps = point.steps
        reached = f"{steps.steps:,.1f}" if steps.steps is not None else "not reached"
        between = f"{steps.low:,.0f} to {steps.high:,.0f}" if steps.steps is not None else f"beyond {steps.low:,.0f}"
        examples = f"{steps.steps * point.batch_size:,.0f}" if steps.steps is not None else "-"
        edge = "  edge of the grid" if point.is_at_grid_edge else ""
        rows.append(f"{point.batch_size:>10,}  {point.lr:>13.4g}  {reached:>10}  {between:>19}  {examples:>14}{edge}")
    return rows
