"""The headline comparison: the noise scale of each task against its measured critical batch.

A point is a task and an optimizer: the newest sweep that could be fitted gives B_crit at its hardest target, the runs
of that sweep nearest to B_crit give the noise scale up to that target. What was computed for the same data is
remembered, so that a second look costs three queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.comparison.comparison import Statistics, kappa_estimate, statistics
from noisescale_server.analysis.comparison.task_order import Rung, TaskOrder, task_order
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.series.averages import Averages
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import Finding
from noisescale_server.services.platform.errors import SweepNotFound
from noisescale_server.services.series import averages as task_averages
from noisescale_server.services.sweeps import measured as measured_sweep
from noisescale_server.services.sweeps.measured import MeasuredSweep, RunToTarget
from noisescale_server.storage import comparison as storage
from noisescale_server.storage.comparison import MeasuredRun, SweepMark
from noisescale_server.storage.runs.streams import Coverage

Average = Literal["run_average", "ideal_step_average", "equal_example_average", "start"]
Source = Literal["sweep", "task", "given"]

MAX_SWEEPS = 500
MAX_RUNS_OF_TASK = 4
"""Where a sweep's own runs are not stored, so many of the task's longest resolved runs stand in."""

RunKey = tuple[UUID, object, tuple[Coverage, ...], int | None]
GroupKey = tuple[UUID, str | None]


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """A task and an optimizer in the comparison; noise scale and B_crit in examples.

    Attributes:
        project: Name of the project.
        task: Name of the task.
        family: Of the task, or None.
        optimizer: Of the sweep, or None.
        unit: What people count in.
        units_per_example: How many of them make an example.
        sweep: B_crit with its target, or what is known of it.
        noise_scale: Averages up to the target; None while no window is resolved.
        run_ids: Runs that they are of.
        source: Whether these are the sweep's runs, others of the task, or the ones asked for.
        kappa: B_crit / noise scale, of the average asked for; None unless both are known.
        left_out: Why the task is not in the statistics; None where it is.
    """

    project: str
    task: str
    family: str | None
    optimizer: str | None
    unit: str
    units_per_example: float
    sweep: MeasuredSweep
    noise_scale: Averages | None
    run_ids: tuple[UUID, ...]
    source: Source
    kappa: Estimate | None
    left_out: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All tasks, and what they say together.

    Attributes:
        average: The average that statistics and order are of.
        tasks: By project, task and optimizer.
        statistics: None for fewer than five tasks with both numbers.
        statistics_missing: Why there are none; None where there are.
        orders: One's own tasks of a family, by noise scale.
    """

    average: Average
    tasks: tuple[ComparedTask, ...]
    statistics: Statistics | None
    statistics_missing: str | None
    orders: tuple[TaskOrder, ...]


class Comparisons:
    """What this process has computed of sweeps and runs; the ones not asked for longest are forgotten."""

    def __init__(self, capacity: int = 2_000) -> None:
        self._sweeps: LRUCache[tuple[UUID, str], MeasuredSweep] = LRUCache(capacity)
        self._runs: LRUCache[RunKey, Averages | None] = LRUCache(capacity)

    async def sweep(self, session: AsyncSession, mark: SweepMark) -> MeasuredSweep | None:
        """What the sweep measured; None if it was deleted meanwhile."""
        key = (mark.sweep_id, mark.version)
        found = self._sweeps.get(key)
        if found is None:
            try:
                self._sweeps[key] = found = await measured_sweep.measure(session, mark.sweep_id)
            except SweepNotFound:
                return None
        return found

    async def run(self, session: AsyncSession, run: MeasuredRun, to_step: int | None) -> Averages | None:
        """The averages of a run up to a step; None while no window is resolved."""
        key = (run.run_id, run.created_at, run.coverage, to_step)
        try:
            return self._runs[key]  # None is an answer, too
        except KeyError:
            self._runs[key] = found = await task_averages.of_run(session, run, to_step)
            return found


async def compare(
    session: AsyncSession,
    known: Comparisons,
    *,
    project: str | None,
    tasks: Sequence[str] | None,
    run_ids: Sequence[UUID],
    average: Average,
) -> Comparison:
    """The comparison over the tasks of a project, over some tasks, or over those of some runs."""
    given = await storage.measured_runs(session, run_ids) if run_ids else {}
    marks = await storage.sweep_marks(session, project=project, tasks=tasks, limit=MAX_SWEEPS)
    if run_ids:
        task_ids = {run.task_id for run in given.values()}
        marks = [mark for mark in marks if mark.task_id in task_ids]
    chosen = await _newest_fitted(session, known, marks)
    runs = _given_runs(chosen, given) if run_ids else await _runs_of_tasks(session, chosen)
    wanted = {one.run_id for _, found in runs.values() for one in found} - given.keys()
    measured = {**given, **(await storage.measured_runs(session, list(wanted)) if wanted else {})}
    found = []
    for key, (mark, sweep) in chosen.items():
        source, of_task = runs[key]
        found.append(await _compared(session, known, mark, sweep, source, of_task, measured, average))
    found.sort(key=lambda one: (one.project, one.task, one.optimizer or ""))
    return _together(tuple(found), average)


async def _newest_fitted(
    session: AsyncSession, known: Comparisons, marks: Sequence[SweepMark]
) -> dict[GroupKey, tuple[SweepMark, MeasuredSweep]]:
    """Of each task and optimizer the newest sweep with a B_crit; where none has one, the newest."""
    found: dict[GroupKey, tuple[SweepMark, MeasuredSweep]] = {}
    for mark in marks:
        key = (mark.task_id, mark.optimizer)
        if key in found and found[key][1].critical_batch is not None:
            continue
        measured = await known.sweep(session, mark)
        if measured is not None and (key not in found or measured.critical_batch is not None):
            found[key] = mark, measured
    return found


def _given_runs(
    chosen: dict[GroupKey, tuple[SweepMark, MeasuredSweep]], given: dict[UUID, MeasuredRun]
) -> dict[GroupKey, tuple[Source, list[RunToTarget]]]:
    """The runs asked for, each with its task and optimizer; of the sweep's own up to its target."""
    found: dict[GroupKey, tuple[Source, list[RunToTarget]]] = {}
    for key, (_, sweep) in chosen.items():
        to_step = {one.run_id: one.to_step for one in sweep.runs}
        of_task = [run for run in given.values() if run.task_id == key[0] and _same(run.optimizer, key[1])]
        found[key] = "given", [RunToTarget(run.run_id, to_step.get(run.run_id)) for run in of_task]
    return found


async def _runs_of_tasks(
    session: AsyncSession, chosen: dict[GroupKey, tuple[SweepMark, MeasuredSweep]]
) -> dict[GroupKey, tuple[Source, list[RunToTarget]]]:
    """The runs of the sweep; where none is stored, the longest resolved ones of the task and optimizer."""
    without = {task_id for (task_id, _), (_, sweep) in chosen.items() if not sweep.runs}
    others = await storage.resolved_runs(session, list(without), at_most=MAX_RUNS_OF_TASK) if without else {}
    found: dict[GroupKey, tuple[Source, list[RunToTarget]]] = {}
    for key, (_, sweep) in chosen.items():
        if sweep.runs:
            found[key] = "sweep", list(sweep.runs)
        else:
            ids = [
                one for (task, name), known in others.items() if task == key[0] and _same(name, key[1]) for one in known
            ]
            found[key] = "task", [RunToTarget(one, None) for one in ids[:MAX_RUNS_OF_TASK]]
    return found


async def _compared(
    session: AsyncSession,
    known: Comparisons,
    mark: SweepMark,
    sweep: MeasuredSweep,
    source: Source,
    runs: Sequence[RunToTarget],
    measured: dict[UUID, MeasuredRun],
    average: Average,
) -> ComparedTask:
    present = [(measured[one.run_id], one.to_step) for one in runs if one.run_id in measured]
    each = [(run, await known.run(session, run, to_step)) for run, to_step in present]
    resolved = [(run, one) for run, one in each if one is not None]
    scale = task_averages.of_runs([one for _, one in resolved])
    first = present[0][0] if present else None
    chosen: Estimate | None = None if scale is None else getattr(scale, average)
    return ComparedTask(
        project=mark.project,
        task=mark.task,
        family=mark.family,
        optimizer=mark.optimizer or (first.optimizer if first else None),
        unit=first.unit if first else sweep.unit,
        units_per_example=first.units_per_example if first else 1.0,
        sweep=sweep,
        noise_scale=scale,
        run_ids=tuple(run.run_id for run, _ in resolved),
        source=source,
        kappa=kappa_estimate(chosen, sweep.critical_batch),
        left_out=_left_out(sweep, scale),
    )


def _left_out(sweep: MeasuredSweep, scale: Averages | None) -> str | None:
    if sweep.critical_batch is None:
        return sweep.explanation
    if Finding.FEW_STEPS in sweep.findings:
        return "S_min is below 5 steps, where the theory does not hold: sweep to a harder target."
    if scale is None:
        return "No window of its runs is resolved: measure longer runs at the batch size nearest to B_crit."
    return None


def _together(tasks: tuple[ComparedTask, ...], average: Average) -> Comparison:
    pairs = [
        (one.units_per_example * getattr(one.noise_scale, average).value, one.units_per_example * critical.value)
        for one in tasks
        if one.left_out is None and one.noise_scale is not None and (critical := one.sweep.critical_batch) is not None
    ]
    try:
        found = _kept_statistics(tuple(pairs))
        missing = None if found else f"{_tasks(len(pairs))} both numbers, and an interval over tasks needs 5."
    except ValueError as error:
        found, missing = None, str(error)
    return Comparison(average, tasks, found, missing, _orders(tasks, average))


def _tasks(number: int) -> str:
    return "1 task has" if number == 1 else f"{number} tasks have"


@lru_cache(maxsize=64)
def _kept_statistics(pairs: tuple[tuple[float, float], ...]) -> Statistics | None:
    # resampling 100 tasks takes 20 ms
    return statistics(pairs)


def _orders(tasks: Sequence[ComparedTask], average: Average) -> tuple[TaskOrder, ...]:
    """Tasks of one family by noise scale, where there are two or more."""
    families: dict[str, list[Rung]] = {}
    for one in tasks:
        if one.noise_scale is not None:
            scale: Estimate = getattr(one.noise_scale, average)
            low = scale.value if scale.low is None else scale.low
            rung = Rung(one.task, low * one.units_per_example, scale.high and scale.high * one.units_per_example)
            families.setdefault(one.family or "other", []).append(rung)
    chains = {name: sorted(rungs, key=lambda rung: rung.low) for name, rungs in sorted(families.items())}
    return tuple(task_order(name, average, rungs) for name, rungs in chains.items() if len(rungs) > 1)


def _same(optimizer: str | None, wanted: str | None) -> bool:
    return wanted is None or optimizer is None or optimizer.casefold() == wanted.casefold()
