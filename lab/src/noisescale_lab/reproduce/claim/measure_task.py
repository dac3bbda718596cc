"""One task from beginning to end: its sweep, its tuned runs watched again, and the averages along them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from noisescale.config import Config
from noisescale_lab.reproduce.claim.critical_fit import CriticalFit, exclusion, fit
from noisescale_lab.reproduce.claim.effort import Effort, group_of
from noisescale_lab.reproduce.claim.noise_over_run import (
    exact_average,
    has_enough,
    ideal_step_average,
    interval_of_average,
    joined,
    resolved_share,
    run_average,
    seeds_needed,
    windows_of,
)
from noisescale_lab.reproduce.claim.stacked_trial import SharedStream, steps_of
from noisescale_lab.reproduce.claim.task_result import (
    AdaptiveBatch,
    TargetResult,
    TaskResult,
    TunedRun,
    run_nearest_critical,
)
from noisescale_lab.reproduce.claim.tuned_sweep import TunedSweep
from noisescale_lab.reproduce.claim.watched_run import Watched, exact_terms, terms_of, watch_run
from noisescale_lab.reproduce.registry import ALL
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, advance, evaluate
from noisescale_lab.sweep.trial import Curve, Trial, steps_to_target

LONGEST = 2.0
"""The last stage goes on for so much longer than foreseen, until the target is met."""

LOOKS = 4
"""Evaluations of a stage."""

MORE_NEAR_CRITICAL = 4
"""Steps that may be watched of the tuned run nearest B_crit, over those of any other."""

LEAST_RESOLVED = 0.5
"""An average over less of the run is one of its beginning, which says little about the whole."""


# A batch size that follows the noise scale, against the tuned constant one nearest B_crit: reported, not judged.
#
# The schedule is made from the noise scale along the constant run, so it knows its future. What it can save is small:
# the theory's own prediction stands beside.
#
# Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D: B = √(r φ), with r = B_crit, one step's worth in
# examples.


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
        rate = 1 / stretched if task.optimizer.class_name == "SGD" else math.sqrt(batch / run.batch)
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


def measure_task(
    name: str,
    effort: Effort,
    *,
    seed: int,
    config: Config,
    progress: Callable[[str], None],
    store: Callable[[Task, TunedSweep, dict[int, list[Watched]]], str | None],
) -> TaskResult:
    """Everything that one task says about the claim.

    Args:
        name: Of the task.
        effort: How much to spend.
        seed: The first of the seeds.
        config: Where watched runs are sent.
        progress: Is told each batch size.
        store: Keeps the sweep and its watched runs; gives its id, or None.
    """
    start = time.perf_counter()
    task = ALL[name]()
    sweep = TunedSweep(task, effort, seed, progress)
    sweep.run()
    watched: dict[int, list[Watched]] = {}
    runs = []
    nearest = _nearest(list(sweep.best), fit(sweep.points(task.targets[-1])))
    for batch, trial in sorted(sweep.best.items()):
        # a single example a step has no spread: its noise scale cannot be seen
        if batch > 1 and math.isfinite(steps_of(trial, task.targets[-1], task.goal)):
            # the headline rests on this run alone
            most_steps = effort.watched_steps * (MORE_NEAR_CRITICAL if batch == nearest else 1)
            run, kept = _watch(task, trial, seed, most_steps, config)
            runs.append(run)
            watched[batch] = kept
            progress(f"{name}: batch {batch:,} watched with {run.num_watched} seeds")
    targets = [_target_result(sweep, runs, place) for place in range(len(task.targets))]
    result = TaskResult(
        task=name,
        unit=task.unit,
        units_per_example=task.units_per_example,
        goal=task.goal,
        optimizer=task.optimizer.name,
        group=group_of(name),
        effort=effort.name,
        seed=seed,
        num_seeds=len(sweep.seeds),
        num_runs=sum(len(trial.curves) for trial in sweep.trials),
        seconds=0.0,
        runs=tuple(runs),
        targets=tuple(targets),
    )
    result = replace(result, adaptive=_adaptive(task, result, sweep.seeds))
    return replace(result, sweep_id=store(task, sweep, watched), seconds=time.perf_counter() - start)


def _adaptive(task: Task, result: TaskResult, seeds: Sequence[int]) -> AdaptiveBatch | None:
    fitted, run = result.targets[-1].fit, run_nearest_critical(result)
    if fitted is None or run is None or task.carried is not None:
        # what is carried on belongs to as many examples as a step has, and cannot follow when that changes
        return None
    return adaptive_batch(task, run, fitted.critical_batch, seeds)


def _watch(task: Task, trial: Trial, seed: int, most_steps: int, config: Config) -> tuple[TunedRun, list[Watched]]:
    """A tuned run watched until the hardest target is met, with as many seeds as its windows need.

    Seeds are doubled while too few windows are clear, until all of them together have taken `most_steps`.
    """
    batch, lr = trial.setting.batch_size, trial.setting.lr
    steps = trial.last_step  # the evaluation past the target, so that a stored run has met it
    # the server wants the metric of a run; without one the curve of the sweep says it already
    evaluated_at = frozenset(trial.curves[0].steps if config.mode == "online" else ())
    wanted = seeds_needed(steps)
    watched: list[Watched] = []
    while True:
        watched += [
            watch_run(
                task, batch=batch, learning_rate=lr, seed=one, steps=steps, evaluated_at=evaluated_at, config=config
            )
            for one in range(seed + len(watched), seed + wanted)
        ]
        terms = terms_of(watched)
        if has_enough(terms) or 2 * wanted * steps > most_steps:
            break
        wanted *= 2
    exact = exact_terms(task, batch=batch, learning_rate=lr, seeds=range(seed, seed + wanted), steps=steps)
    windows = windows_of(terms, exact)
    found = (steps_of(trial, target, task.goal) for target in task.targets)
    reached = tuple(value if math.isfinite(value) else None for value in found)
    mean = trial.mean_curve()
    run = TunedRun(
        batch=batch,
        lr=lr,
        steps=reached,
        curve=tuple(zip(mean.steps, mean.values, strict=True)),
        num_watched=wanted,
        windows=windows,
        spans=joined(terms, exact, windows),
    )
    return run, watched


def _target_result(sweep: TunedSweep, runs: Sequence[TunedRun], place: int) -> TargetResult:
    target = sweep.target(place)
    points = tuple(sweep.points(target))
    found = fit(points)
    by_batch = {run.batch: run for run in runs}
    near_batch = _nearest(list(by_batch), found)
    nearest = None if near_batch is None else by_batch[near_batch]
    ends = {run.batch: run.steps[place] or run.curve[-1][0] for run in runs}
    averages = [run_average(run.spans, ends[run.batch]) for run in runs if _unresolved(run, ends[run.batch]) is None]
    known = [value for value in averages if value is not None]
    until = math.inf if near_batch is None else ends[near_batch]
    near = None if nearest is None else run_average(nearest.spans, until)
    return TargetResult(
        target=target,
        points=points,
        fit=found,
        exclusion=exclusion(found) or _unresolved(nearest, until),
        near_critical=near,
        near_interval=None if nearest is None else interval_of_average(nearest.spans, until),
        ideal_steps=None if nearest is None else ideal_step_average(nearest.spans, nearest.batch, until),
        all_batches=math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None,
        exact_near_critical=None if nearest is None else exact_average(nearest.spans, until),
    )


def _unresolved(run: TunedRun | None, until: float) -> str | None:
    """Why the noise scale of a run does not count; None where it does."""
    if run is None:
        return "no tuned run was watched"
    share = resolved_share(run.spans, until)
    if share >= LEAST_RESOLVED:
        return None
    return f"the noise scale is resolved along {share:.0%} of the run, less than {LEAST_RESOLVED:.0%}"


def _nearest(batches: Sequence[int], found: CriticalFit | None) -> int | None:
    if found is None:
        return None
    return min(batches, key=lambda batch: abs(math.log(batch / found.critical_batch)), default=None)
