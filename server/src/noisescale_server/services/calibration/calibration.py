"""κ of the project's own sweeps, branches and followed runs, measured when their runs change."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.measurement import observed_kappa
from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.services import runs
from noisescale_server.services.calibration import followed, known_rates
from noisescale_server.services.sweeps import gathered, noise_scale_behind, sweeps
from noisescale_server.services.sweeps.measured import MeasuredSweep, last_step, measure
from noisescale_server.services.sweeps.noise_scale_behind import Behind, RunBehind
from noisescale_server.services.sweeps.sweeps import GivenRun, SweepView
from noisescale_server.storage import calibration as followed_rows
from noisescale_server.storage import calibration as storage
from noisescale_server.storage.calibration import FOLLOWED, NewCalibration
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.tables import Calibration, Sweep

LEVEL = 0.95
MAX_HELD = 50
"""Runs held against one sweep that are shown."""
MAX_REPEATS = 4
"""Runs of one setting that are read."""

MAX_RUNS = 48
"""Runs of one sweep that are read, of every batch size as many as of the others."""


async def attach(session: AsyncSession, sweep_id: UUID, given: Sequence[GivenRun]) -> SweepView:
    """The sweep with these runs added, and what it says of κ measured anew.

    Raises:
        SweepNotFound: When no sweep has this id.
        RunNotFound: For a stored run that the sweep's project does not have.
        InvalidInput: Where a batch size or learning rate is neither given nor logged, or there are too many runs.
    """
    await placement.one_connection_a_node(session)
    view = await sweeps.attach(session, sweep_id, given)
    await _let_go(session, [run.run_id for run in given if run.is_stored])
    await refresh(session, sweep_id)
    return view


async def _let_go(session: AsyncSession, run_ids: Sequence[UUID]) -> None:
    """What a sweep has now says nothing by itself any more: a run counts once."""
    await followed_rows.forget(session, [followed.row_of(run_id) for run_id in run_ids])


async def remove_run(session: AsyncSession, run_id: UUID) -> None:
    """Delete a run, and measure anew what its sweeps say of κ.

    Raises:
        RunNotFound: When no run has this id.
    """
    await placement.one_connection_a_node(session)
    touched = {*await sweeps_with(session, run_id), *await followed_rows.sweeps_behind(session, run_id)}
    await runs.remove(session, run_id)
    for sweep_id in sorted(touched):
        await refresh(session, sweep_id)


async def remove_sweep(session: AsyncSession, sweep_id: UUID) -> None:
    """Delete a sweep; runs that were held against it are held against the newest that is left for them.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    await placement.one_connection_a_node(session)
    held = await followed_rows.runs_against(session, sweep_id)
    await followed_rows.forget(session, list(held.values()))
    await sweeps.remove(session, sweep_id)
    others = {await followed.sweep_for(session, run_id) for run_id in held}
    for other in sorted(one for one in others if one is not None):
        await refresh(session, other)


async def held_against(session: AsyncSession, sweep_id: UUID) -> list[tuple[Calibration, Sweep]]:
    """What runs say that are held against the sweep, the newest 50, each with its row of kind followed."""
    return await followed_rows.newest(session, MAX_HELD, sweep_id=sweep_id)


async def sweeps_with(session: AsyncSession, run_id: UUID) -> Sequence[UUID]:
    """Sweeps that the stored run belongs to."""
    return await storage.sweeps_with(session, run_id)


async def after_finish(session: AsyncSession, sweep_id: UUID) -> None:
    """Renew what a sweep says once a run of it has finished; one that made itself holds no run whose batch changed."""
    await placement.one_connection_a_node(session)
    if await storage.lock(session, sweep_id):
        await gathered.leave_changed(session, (await sweeps.row(session, sweep_id)).sweep)
        await refresh(session, sweep_id)


async def refresh(session: AsyncSession, sweep_id: UUID) -> None:
    """Renew what a sweep or branch says by what its runs say now, and what runs say that are held against it.

    A sweep that is gone says nothing.
    """
    await placement.one_connection_a_node(session)
    if not await storage.lock(session, sweep_id):
        return
    view = await sweeps.get(session, sweep_id)
    sweep = view.row.sweep
    if storage.IMPORTED in sweep.details:
        return
    if sweep.kind == FOLLOWED:
        return  # it is measured with the sweep that it is held against
    if sweep.kind == "branch":
        await _keep(session, sweep, *await _of_branch(session, sweep))
        return
    measured = await measure(session, sweep.id)
    optimizer = await _keep(session, sweep, *await _of_sweep(session, view, measured))
    await followed.refresh(session, sweep, measured, optimizer)


async def _keep(session: AsyncSession, sweep: Sweep, found: dict[str, Any], behind: Behind) -> str:
    """Keep what was found as the sweep's row; the kind of its optimizer."""
    optimizer = optimizer_kind(sweep.optimizer or behind.optimizer)
    row = NewCalibration(
        sweep_id=sweep.id,
        project_id=sweep.project_id,
        task_id=sweep.task_id,
        optimizer=optimizer,
        family=await storage.family_of_task(session, sweep.task_id),
        **found,
    )
    await storage.keep(session, row)
    return optimizer


async def _of_sweep(session: AsyncSession, view: SweepView, sweep: MeasuredSweep) -> tuple[dict[str, Any], Behind]:
    reached = [point for point in sweep.points if point.average.steps.steps is not None]
    behind = await noise_scale_behind.of_runs(session, _tuned_runs(view, sweep))
    tuned = [
        {"batch_size": point.batch_size, "lr": point.lr, "steps": point.average.steps.steps or 0.0} for point in reached
    ]
    known = sweep.critical_batch or sweep.bounds
    fields = {
        "target": sweep.target,
        "tuned": tuned,
        "curve": [asdict(point) for point in sweep.curve],
        "rates": await known_rates.of_sweep(session, view, sweep),
        "min_steps": sweep.min_steps and sweep.min_steps.value,
    }
    return fields | _against(known, behind, sweep.explanation), behind


def _tuned_runs(view: SweepView, sweep: MeasuredSweep) -> list[RunBehind]:
    """Stored runs at the best learning rate of each batch size that reached the target."""
    found: list[list[RunBehind]] = []
    for point in sweep.points:
        if point.average.steps.steps is None:
            continue
        here = [
            RunBehind(run.run_id, point.batch_size, last_step(point))
            for run in view.runs
            if run.is_stored and run.status == "complete" and (run.batch_size, run.lr) == (point.batch_size, point.lr)
        ]
        found.append(here[:MAX_REPEATS])
    turns = [here[turn] for turn in range(MAX_REPEATS) for here in found if turn < len(here)]
    return turns[:MAX_RUNS]


async def _of_branch(session: AsyncSession, sweep: Sweep) -> tuple[dict[str, Any], Behind]:
    bounds = _local_critical_batch(sweep.details)
    if bounds is None or sweep.run_id is None:
        return {"missing": "The branch compared no batch sizes at equal examples."}, Behind(None, None, None)
    behind = await noise_scale_behind.of_branching_point(session, sweep.run_id)
    return _against(bounds, behind, None), behind


def _local_critical_batch(details: dict[str, Any]) -> Bounds | None:
    """What a branch says; details are the client's words, so anything may stand there."""
    local = details.get("local_critical_batch")
    if not isinstance(local, dict):
        return None
    ends = [
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
        else None
        for value in (local.get("low"), local.get("high"))
    ]
    low, high = ends
    if (low is None and high is None) or (low is not None and high is not None and low >= high):
        return None
    return Bounds(low, high, LEVEL)


def _against(known: Estimate | Bounds | None, behind: Behind, explanation: str | None) -> dict[str, Any]:
    """The columns of B_crit, of the noise scale and of κ."""
    if known is None:
        return {"missing": explanation}
    fields: dict[str, Any] = {
        "critical_batch": known.value if isinstance(known, Estimate) else None,
        "critical_batch_low": known.low,
        "critical_batch_high": known.high,
    }
    scale = behind.noise_scale
    found = None if scale is None else observed_kappa(known, scale)
    if scale is None or found is None:
        return fields | {"missing": behind.missing or explanation}
    return fields | {
        "noise_scale": scale.value,
        "log_kappa_low": found.low if math.isfinite(found.low) else None,
        "log_kappa_high": found.high if math.isfinite(found.high) else None,
        "error": found.error,
        "num_runs": found.num_runs,
        "squares": found.squares,
        "run_error": found.run_error,
        "missing": explanation,
    }
