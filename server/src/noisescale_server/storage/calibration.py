"""What sweeps, branches and followed runs say of B_crit and κ, one row each."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from noisescale_server.storage import recommendation as run_decisions
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Calibration, Project, Run, Sweep, SweepRun, Task

IMPORTED = "imported"
"""Among the details of a sweep that another server has measured: when it did."""

MAX_SWEEPS = 50
"""Of one task that are shown; κ is from all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCalibration:
    """A row as it is written; see the table."""

    sweep_id: UUID
    project_id: UUID
    task_id: UUID
    optimizer: str
    family: str | None
    target: float | None = None
    critical_batch: float | None = None
    critical_batch_low: float | None = None
    critical_batch_high: float | None = None
    min_steps: float | None = None
    tuned: list[dict[str, float]] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    rates: list[dict[str, Any]] = field(default_factory=list)
    noise_scale: float | None = None
    log_kappa_low: float | None = None
    log_kappa_high: float | None = None
    error: float | None = None
    num_runs: int = 0
    squares: float = 0.0
    run_error: float = 0.0
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A row with its sweep and the names of its project and task."""

    row: Calibration
    sweep: Sweep
    project: str
    task: str


@dataclass(frozen=True, slots=True)
class StoredKappa:
    """log κ of one sweep, branch or followed run, with its task."""

    task_id: UUID
    kind: str
    log_kappa_low: float | None
    log_kappa_high: float | None
    error: float
    num_runs: int
    squares: float
    run_error: float


@dataclass(frozen=True, slots=True)
class WantedKappa:
    """Whose κ is asked for.

    Attributes:
        project_id: Of the task.
        optimizer: Its kind.
        task_id: The task.
        family: As a run says; None: as the task says.
    """

    project_id: UUID
    optimizer: str
    task_id: UUID
    family: str | None


_KAPPAS = """
SELECT place, calibration.task_id, sweep.kind, log_kappa_low, log_kappa_high, error, num_runs, squares, run_error
FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[]) WITH ORDINALITY
  AS wanted(project_id, optimizer, task_id, family, place)
JOIN calibration ON calibration.project_id = wanted.project_id AND calibration.optimizer = wanted.optimizer
  AND error IS NOT NULL AND (
    calibration.task_id = wanted.task_id
    OR calibration.family = coalesce(wanted.family, (SELECT family FROM task WHERE id = wanted.task_id))
  )
JOIN sweep ON sweep.id = calibration.sweep_id
ORDER BY place, calibration.task_id, sweep.id
"""


async def lock(session: AsyncSession, sweep_id: UUID) -> bool:
    """True if the sweep exists; until the transaction ends nobody else measures it."""
    held = select(Sweep.id).where(Sweep.id == sweep_id).with_for_update(key_share=True)
    return await session.scalar(held) is not None


async def sweeps_with(session: AsyncSession, run_id: UUID) -> Sequence[UUID]:
    """Sweeps that a stored run belongs to, in the order of their ids."""
    held = select(SweepRun.sweep_id).where(SweepRun.run_id == run_id, SweepRun.is_stored)
    return (await session.scalars(held.order_by(SweepRun.sweep_id))).all()


async def family_of_task(session: AsyncSession, task_id: UUID) -> str | None:
    """The task's family; where a sweep came before its runs, what the runs say."""
    of_runs = select(func.max(Run.family)).where(Run.task_id == task_id).scalar_subquery()
    found: str | None = await session.scalar(select(func.coalesce(Task.family, of_runs)).where(Task.id == task_id))
    return found


async def keep(session: AsyncSession, new: NewCalibration) -> None:
    """Keep the row as the sweep's; every run of the project is judged again."""
    values = asdict(new)
    row = insert(Calibration).values(values | {"measured_at": func.now()})
    # the moment as it was given: a statement that updates may not ask for it on every node
    changed = {name: row.excluded[name] for name in (*values, "measured_at") if name != "sweep_id"}
    await session.execute(row.on_conflict_do_update(index_elements=["sweep_id"], set_=changed))
    await run_decisions.mark_project(session, new.project_id)


async def kappas(session: AsyncSession, wanted: Sequence[WantedKappa]) -> list[list[StoredKappa]]:
    """κ of every sweep, branch and followed run of each wanted task and its family, by task; one statement for all."""
    columns = zip(*((one.project_id, one.optimizer, one.task_id, one.family) for one in wanted), strict=True)
    found: list[list[StoredKappa]] = [[] for _ in wanted]
    for place, *row in await read(session, _KAPPAS, *map(list, columns)) if wanted else ():
        found[place - 1].append(StoredKappa(*row))
    return found


_RATES = """
SELECT calibration.task_id, rates
FROM calibration
WHERE project_id = $1::uuid AND optimizer = $2::text AND rates <> '[]'::jsonb AND (
  task_id = $3::uuid OR family = coalesce($4::text, (SELECT family FROM task WHERE id = $3::uuid))
)
ORDER BY task_id <> $3::uuid, measured_at DESC, sweep_id
LIMIT $5::int
"""


async def rates(session: AsyncSession, wanted: WantedKappa) -> list[tuple[UUID, list[dict[str, Any]]]]:
    """What runs say of how paths tell learning rates, of the newest 50 sweeps, those of the task first.

    Args:
        session: Where to read.
        wanted: Whose.
    """
    return [(task_id, said) for task_id, said in await read(session, _RATES, *astuple(wanted), MAX_SWEEPS)]


async def swept_runs(session: AsyncSession, project: str | None, limit: int) -> list[tuple[Run, float, float]]:
    """Stored runs of sweeps that were fitted, with their batch size and the sweep's B_crit in examples, newest first.

    Args:
        session: Where to read.
        project: Of the runs; None: of all that the reader sees.
        limit: Of the runs.
    """
    rows = (
        select(Run, SweepRun.batch_size, Calibration.critical_batch)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .join(Calibration, Calibration.sweep_id == SweepRun.sweep_id)
        .join(Sweep, Sweep.id == Calibration.sweep_id)
        .where(SweepRun.is_stored, Sweep.kind == "sweep", Calibration.critical_batch.is_not(None))
        .order_by(Run.created_at.desc(), Run.id)
        .limit(limit)
    )
    if project is not None:
        rows = rows.join(Project, Project.id == Run.project_id).where(Project.name == project)
    found = await session.execute(rows)
    return [(run, batch, critical) for run, batch, critical in found if critical is not None]


async def of_task(session: AsyncSession, task_id: UUID) -> Sequence[tuple[Calibration, Sweep]]:
    """What the newest 50 sweeps and branches of a task say, newest first."""
    rows = (
        select(Calibration, Sweep)
        .join(Sweep, Sweep.id == Calibration.sweep_id)
        .where(Sweep.task_id == task_id, Sweep.kind.in_(("sweep", "branch")))
        .order_by(Sweep.created_at.desc(), Sweep.id.desc())
        .limit(MAX_SWEEPS)
    )
    return [(calibration, sweep) for calibration, sweep in await session.execute(rows)]


async def of_project(session: AsyncSession, project: str, limit: int) -> list[StoredCalibration]:
    """What a project's sweeps, branches and followed runs say of B_crit, κ or learning rates, newest first.

    Args:
        session: Where to read.
        project: Its name.
        limit: Of the rows.
    """
    says_something = or_(
        Calibration.error.is_not(None),
        Calibration.critical_batch_low.is_not(None),
        Calibration.critical_batch_high.is_not(None),
        Calibration.rates != [],
    )
    rows = (
        select(Calibration, Sweep, Project.name, Task.name)
        .join(Sweep, Sweep.id == Calibration.sweep_id)
        .join(Project, Project.id == Sweep.project_id)
        .join(Task, Task.id == Sweep.task_id)
        .where(Project.name == project, says_something)
        .order_by(Sweep.created_at.desc(), Sweep.id.desc())
        .limit(limit)
    )
    return [StoredCalibration(*row) for row in await session.execute(rows)]


# Calibrations of kind followed: the row of a run whose batch changed, beside those of sweeps, and what it is held to.
#
# Each is a row of `sweep` without runs, of kind `followed`: `run_id` is the run, `details` name the sweep whose S_min
# it is held against. No list of sweeps shows it, as none shows what another server has measured.

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
