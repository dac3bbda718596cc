"""The metric of a sweep's runs along their steps: as it was given, or read from the runs that are stored."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.ladder import target_ladder
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, Trial, settings_of
from noisescale_server.services.series import metrics, whole_run
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.metrics import AskedMetrics
from noisescale_server.services.sweeps.sweeps import Goal
from noisescale_server.storage import sweeps
from noisescale_server.storage.platform.tables import Sweep, SweepRun
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE

MAX_POINTS = 500
"""Of a stored run: a training loss is averaged over 1/500 to 1/250 of the run before it is crossed."""


@dataclass(frozen=True, slots=True)
class RunCurve:
    """One run of a sweep.

    Attributes:
        run: Batch size, learning rate, seed and status.
        steps: Optimizer steps taken at each evaluation, rising.
        values: The metric there.
    """

    run: SweepRun
    steps: Sequence[int]
    values: Sequence[float]


async def of_sweep(session: AsyncSession, sweep: Sweep, attached: Sequence[SweepRun]) -> list[RunCurve]:
    """Every run that is not infeasible, and has been evaluated at all."""
    found = []
    for run in attached:
        if run.status == "infeasible":
            continue
        if run.is_stored:
            read = await of_stored_run(session, run.run_id, sweep.metric)
            found.append(RunCurve(run, [step for step, _ in read], [value for _, value in read]))
        else:
            found.append(RunCurve(run, run.curve_steps, run.curve_values))
        await asyncio.sleep(0)  # thousands of curves must not keep other requests waiting
    return [curve for curve in found if curve.steps]


async def settings_of_sweep(session: AsyncSession, sweep: Sweep) -> tuple[Setting, ...]:
    """All runs of a sweep with their metric, as the analysis takes them."""
    attached = await sweeps.runs_of(session, sweep.id)
    curves = await of_sweep(session, sweep, attached)
    return settings(attached, curves, "max" if sweep.goal == "max" else "min")


def settings(attached: Sequence[SweepRun], curves: Sequence[RunCurve], goal: Goal) -> tuple[Setting, ...]:
    """The runs as the analysis takes them, with those that diverged; those without any evaluation are left out."""
    diverged = [Trial(run.batch_size, run.lr, run.seed, None) for run in attached if run.status == "infeasible"]
    evaluated = [
        Trial(
            one.run.batch_size,
            one.run.lr,
            one.run.seed,
            MetricCurve(tuple(map(float, one.steps)), tuple(one.values), Direction(goal)),
        )
        for one in curves
    ]
    return settings_of([*diverged, *evaluated])


async def of_stored_run(session: AsyncSession, run_id: UUID, metric: str | None) -> list[tuple[int, float]]:
    """(steps taken, value): step 0 is the first, so one has been taken after it; of a deleted run nothing."""
    if await runs.get(session, run_id) is None:
        return []
    if metric is None:
        return await _training_loss(session, run_id)
    found = await metrics.of_run(session, run_id, AskedMetrics(name=metric, max_points=MAX_POINTS))
    return [
        (step + 1, value)
        for one in found.metrics
        for step, value in zip(one.step, one.value, strict=True)
        if value is not None
    ]


async def _training_loss(session: AsyncSession, run_id: UUID) -> list[tuple[int, float]]:
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id, SIMPLE))
    if not live.intervals:
        return []
    found = await whole_run.points_of(session, live, MAX_POINTS)
    rows = zip(found.step_last, found.sum_loss, found.num_loss, strict=True)
    return [(step + 1, total / count) for step, total, count in rows if count]


# The targets of a sweep: its own, or where it has none a ladder over what its runs reached.

NUM_TARGETS = 5


def goal_of(sweep: Sweep) -> Goal:
    """Whether the sweep's metric falls or rises to a target."""
    return "max" if sweep.goal == "max" else "min"


def targets_of(sweep: Sweep, settings: Sequence[Setting]) -> list[float]:
    """Targets, the hardest first; empty where the sweep names none and its runs did not improve."""
    return sorted(sweep.targets or ladder(settings), reverse=sweep.goal == "max")


def ladder(settings: Sequence[Setting]) -> Sequence[float]:
    """Targets from easy to hard that every run reached; empty where there are none."""
    curves = [curve for setting in settings for curve in setting.curves]
    return target_ladder(curves, num_targets=NUM_TARGETS) if curves else ()
