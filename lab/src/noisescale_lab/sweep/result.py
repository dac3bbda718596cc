"""What a sweep found, and as a table to print."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisescale_lab.sweep.question import Question
from noisescale_lab.sweep.trial import StepsToTarget, Trial, steps_to_target

SHOWN = (
    ("B_crit", "critical_batch", "examples"),
    ("S_min", "min_steps", "steps"),
    ("E_min", "min_examples", "examples"),
)


# The server's fit in words: values with their intervals, and what speaks against them.


def fit_lines(found: Mapping[str, object]) -> list[str]:
    """The fit of one target, or why there is none; then one line for each thing that speaks against it.

    Args:
        found: One target of the answer to `GET …/critical-batch`.
    """
    fit, refusal = found.get("fit"), found.get("refusal")
    if not isinstance(fit, Mapping):
        explanation = refusal.get("explanation") if isinstance(refusal, Mapping) else None
        return [f"No fit: {explanation}"]
    values = "; ".join(f"{name} {_interval(fit.get(field))} {unit}" for name, field, unit in SHOWN)
    lack = fit.get("lack_of_fit")
    named = lack.get("findings") if isinstance(lack, Mapping) else None
    findings = [str(one) for one in named] if isinstance(named, Sequence) else []
    against = [f"Against the fit: {_said(finding, fit)}" for finding in findings]
    return [f"{values} ({_level(fit)} %).", *_turn(fit), *(against or ["Nothing speaks against the fit."])]


def _turn(fit: Mapping[str, object]) -> list[str]:
    """The batch with the fewest examples, and what was left out below it, where a sweep turns up again there."""
    turn = fit.get("turn")
    if not isinstance(turn, Mapping):
        return []
    return [f"B_opt {_interval(turn.get('best_batch'))} examples. {turn.get('explanation')}"]


def _said(finding: str, fit: Mapping[str, object]) -> str:
    """A finding as a sentence with its number and the way out."""
    lack = fit.get("lack_of_fit")
    assert isinstance(lack, Mapping)
    if finding == "exponent":
        return (
            f"the curve bends in another way than the theory's, with exponent {_interval(lack.get('exponent'))} and "
            "not 1: B_crit holds near the batch sizes that were tried."
        )
    if finding == "misfit":
        rms = fit.get("rms")
        by = f" by {rms:.0%} (rms)" if isinstance(rms, float) else ""
        return f"batch sizes miss the curve{by}, more than repeats differ: tune the outlying ones again."
    if finding == "unequal_noise":
        return "repeats scatter more at some batch sizes than at others; the intervals allow for it."
    if finding == "grid_edge":
        sizes = lack.get("grid_edge_batch_sizes")
        named = ", ".join(f"{size:,.0f}" for size in sizes) if isinstance(sizes, Sequence) else "some"
        return f"the best learning rate was the last one tried at batch size {named}: try rates beyond it."
    if finding == "few_steps":
        return "S_min is below 5 steps, where the theory does not hold: choose a harder target."
    return f"{finding.replace('_', ' ')}."


def _level(fit: Mapping[str, object]) -> str:
    critical = fit.get("critical_batch")
    level = critical.get("level") if isinstance(critical, Mapping) else None
    return f"{level * 100:.4g}" if isinstance(level, float) else "?"


def _interval(estimate: object) -> str:
    if not isinstance(estimate, Mapping):
        return "unknown"
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    shown = [_number(number) if isinstance(number, int | float) else "?" for number in (value, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _number(value: float) -> str:
    """Four significant digits, with thousands separators instead of an exponent."""
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"


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
