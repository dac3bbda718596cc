"""One task from beginning to end: its sweep, its tuned runs watched again, and the averages along them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from noisescale.config import Config
from noisescale.reproduce.claim.critical_fit import CriticalFit, exclusion, fit
from noisescale.reproduce.claim.effort import Effort, group_of
from noisescale.reproduce.claim.noise_over_run import (
    exact_average,
    ideal_step_average,
    is_well_seen,
    run_average,
    seeds_needed,
    windows_of,
)
from noisescale.reproduce.claim.stacked_trial import steps_of
from noisescale.reproduce.claim.task_result import TargetResult, TaskResult, TunedRun
from noisescale.reproduce.claim.tuned_sweep import TunedSweep
from noisescale.reproduce.claim.watched_run import Watched, exact_terms, terms_of, watch_run
from noisescale.reproduce.registry import ALL
from noisescale.reproduce.task import Task
from noisescale.sweeps.trial import Trial


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
    for batch, trial in sorted(sweep.best.items()):
        if math.isfinite(steps_of(trial, task.targets[-1])):
            run, kept = _watch(task, trial, seed, effort.watched_steps, config)
            runs.append(run)
            watched[batch] = kept
            progress(f"{name}: batch {batch:,} watched with {run.num_watched} seeds")
    targets = [_target_result(sweep, runs, place) for place in range(len(task.targets))]
    result = TaskResult(
        task=name,
        unit=task.unit,
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
    return replace(result, sweep_id=store(task, sweep, watched), seconds=time.perf_counter() - start)


def _watch(task: Task, trial: Trial, seed: int, most_steps: int, config: Config) -> tuple[TunedRun, list[Watched]]:
    """A tuned run watched until the hardest target is met, with as many seeds as its windows need.

    Seeds are doubled while the windows are open, until all of them together have taken `most_steps`.
    """
    batch, lr = trial.setting.batch_size, trial.setting.lr
    steps = trial.last_step  # the evaluation past the target, so that a stored run has met it
    evaluated_at = frozenset(trial.curves[0].steps)
    wanted = seeds_needed(steps)
    watched: list[Watched] = []
    while True:
        watched += [
            watch_run(
                task, batch=batch, learning_rate=lr, seed=one, steps=steps, evaluated_at=evaluated_at, config=config
            )
            for one in range(seed + len(watched), seed + wanted)
        ]
        exact = exact_terms(task, batch=batch, learning_rate=lr, seeds=range(seed, seed + wanted), steps=steps)
        windows = windows_of(terms_of(watched), exact)
        if is_well_seen(windows) or 2 * wanted * steps > most_steps:
            break
        wanted *= 2
    found = (steps_of(trial, target) for target in task.targets)
    reached = tuple(value if math.isfinite(value) else None for value in found)
    return TunedRun(batch, lr, reached, wanted, windows), watched


def _target_result(sweep: TunedSweep, runs: Sequence[TunedRun], place: int) -> TargetResult:
    target = sweep.target(place)
    points = tuple(sweep.points(target))
    found = fit(points)
    nearest = None if found is None else _nearest(runs, found)
    until = math.inf if nearest is None else nearest.steps[place] or math.inf
    averages = [run_average(run.windows, run.steps[place] or math.inf) for run in runs]
    known = [value for value in averages if value is not None]
    near = None if nearest is None else run_average(nearest.windows, until)
    excluded = exclusion(found)
    return TargetResult(
        target=target,
        points=points,
        fit=found,
        exclusion=excluded if excluded is not None or near is not None else "the noise scale was never resolved",
        near_critical=near,
        ideal_steps=None if nearest is None else ideal_step_average(nearest.windows, nearest.batch, until),
        all_batches=math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None,
        exact_near_critical=None if nearest is None else exact_average(nearest.windows, until),
    )


def _nearest(runs: Sequence[TunedRun], found: CriticalFit) -> TunedRun | None:
    return min(runs, key=lambda run: abs(math.log(run.batch / found.critical_batch)), default=None)
