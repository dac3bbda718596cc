"""Calibrations of kind followed: the row of a run whose batch changed, beside those of sweeps, and what it is held to.

Each is a row of `sweep` without runs, of kind `followed`: `run_id` is the run, `details` name the sweep whose S_min it
is held against. No list of sweeps shows it, as none shows what another server has measured.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from noisescale_server.storage.calibration.calibration import IMPORTED
from noisescale_server.storage.platform.tables import Calibration, Run, Sweep, SweepRun

FOLLOWED: Final = "followed"
"""The kind."""

HELD_AGAINST: Final = "sweep_id"
"""Where the details name the sweep."""

STEPS: Final = "steps"
"""Where they say how many steps the run took to the target."""


async def fitted_sweeps(session: AsyncSession, task_id: UUID, optimizer: str) -> Sequence[UUID]:
    """Sweeps of a task over batch sizes that were fitted and know their κ, for one kind of optimizer, newest first."""
    rows = (
        select(Sweep.id)
        .join(Calibration, Calibration.sweep_id == Sweep.id)
        .where(Sweep.task_id == task_id, Sweep.kind == "sweep", ~Sweep.details.has_key(IMPORTED))
        .where(Calibration.optimizer == optimizer, Calibration.min_steps.is_not(None), Calibration.error.is_not(None))
        .order_by(Sweep.created_at.desc(), Sweep.id.desc())
    )
    return (await session.scalars(rows)).all()


async def configs_of(session: AsyncSession, sweep_id: UUID) -> Sequence[dict[str, Any]]:
    """The configs of the sweep's stored runs, each once."""
    rows = select(Run.config).join(SweepRun, SweepRun.run_id == Run.id)
    return (await session.scalars(rows.where(SweepRun.sweep_id == sweep_id, SweepRun.is_stored).distinct())).all()


async def runs_against(session: AsyncSession, sweep_id: UUID) -> dict[UUID, UUID]:
    """Runs that are held against the sweep, each with the id of its row."""
    rows = select(Sweep.run_id, Sweep.id).where(_is_against(sweep_id))
    return {run_id: row_id for run_id, row_id in await session.execute(rows) if run_id is not None}


async def sweeps_behind(session: AsyncSession, run_id: UUID) -> list[UUID]:
    """The sweeps that the run is held against: one, or none."""
    rows = select(Sweep.details).where(Sweep.run_id == run_id, Sweep.kind == FOLLOWED)
    return [UUID(details[HELD_AGAINST]) for details in await session.scalars(rows) if HELD_AGAINST in details]


async def forget(session: AsyncSession, row_ids: Sequence[UUID]) -> None:
    """Delete these rows, calibrations included."""
    if row_ids:
        await session.execute(delete(Sweep).where(Sweep.id.in_(row_ids), Sweep.kind == FOLLOWED))


async def forget_run(session: AsyncSession, run_id: UUID) -> None:
    """Delete the row of a run, as of one that is of another task now."""
    await session.execute(delete(Sweep).where(Sweep.run_id == run_id, Sweep.kind == FOLLOWED))


async def newest(
    session: AsyncSession, limit: int, *, task_id: UUID | None = None, sweep_id: UUID | None = None
) -> list[tuple[Calibration, Sweep]]:
    """The newest calibrations of kind followed, those that say nothing included.

    Args:
        session: Where to read.
        limit: Of the rows.
        task_id: Of this task.
        sweep_id: Held against this sweep.
    """
    rows = select(Calibration, Sweep).join(Sweep, Sweep.id == Calibration.sweep_id).where(Sweep.kind == FOLLOWED)
    if task_id is not None:
        rows = rows.where(Sweep.task_id == task_id)
    if sweep_id is not None:
        rows = rows.where(_is_against(sweep_id))
    ordered = rows.order_by(Sweep.created_at.desc(), Sweep.id.desc()).limit(limit)
    return [(calibration, sweep) for calibration, sweep in await session.execute(ordered)]


def _is_against(sweep_id: UUID) -> ColumnElement[bool]:
    # both are of one task, along whose index rows are found
    held = aliased(Sweep)
    task_id = select(held.task_id).where(held.id == sweep_id).scalar_subquery()
    is_named = Sweep.details[HELD_AGAINST].astext == str(sweep_id)
    return and_(Sweep.task_id == task_id, Sweep.kind == FOLLOWED, is_named)
