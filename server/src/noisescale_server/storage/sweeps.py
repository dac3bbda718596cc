"""Sweeps and their runs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from noisescale_server.storage import recommendation as run_decisions
from noisescale_server.storage.calibration import IMPORTED
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.driver import fetch, read
from noisescale_server.storage.platform.tables import Project, Run, Sweep, SweepRun, Task
from noisescale_server.storage.runs import trials
from noisescale_server.storage.runs.runs import filed_under

VERSIONS = """
SELECT r.sweep_id, md5(string_agg(
    r.run_id::text || r.xmin::text || coalesce(s.id::text || s.xmin::text, ''), ',' ORDER BY r.run_id, s.id))
FROM sweep_run r LEFT JOIN stream s ON s.run_id = r.run_id
WHERE r.sweep_id = ANY($1)
GROUP BY r.sweep_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSweep:
    """What a client says about a sweep when it begins."""

    id: UUID
    project: str
    task: str
    name: str | None
    kind: str
    run_id: UUID | None
    metric: str | None
    goal: str
    targets: list[float]
    unit: str
    optimizer: str | None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSweepRun:
    """One run of a sweep; of a stored one the curve is empty, as its own metric is read."""

    run_id: UUID
    is_stored: bool
    batch_size: float
    lr: float
    seed: int | None
    status: str
    curve_steps: list[int] = field(default_factory=list)
    curve_values: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep with the names of its project and task, and how many runs it has."""

    sweep: Sweep
    project: str
    task: str
    num_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFilter:
    """Which sweeps; None means any."""

    project: str | None = None
    task: str | None = None
    kind: str | None = None
    run_id: UUID | None = None


def called(sweep: Sweep, task: str) -> str:
    """Its name; of one that nobody has named its task, kind and moment, as ids say nothing to people.

    Args:
        sweep: As it is stored.
        task: Name of its task.
    """
    if sweep.name != _unnamed(sweep.id):
        return sweep.name
    step = sweep.details.get("step") if sweep.kind == "branch" else None
    at = f" at step {step:,}" if isinstance(step, int) and not isinstance(step, bool) else ""
    return f"{task} {sweep.kind}{at}, {sweep.created_at.astimezone(UTC):%d %b %H:%M}"


def _unnamed(sweep_id: UUID) -> str:
    return str(sweep_id)[:8]


async def rename(session: AsyncSession, sweep_id: UUID, name: str) -> bool:
    """True if the sweep exists; it has this name now."""
    renamed = update(Sweep).where(Sweep.id == sweep_id).values(name=name).returning(Sweep.id)
    return await session.scalar(renamed) is not None


async def create_if_absent(session: AsyncSession, new: NewSweep) -> bool:
    """True if the sweep was created, False if its id existed; project and task are created on first use."""
    if await session.scalar(select(Sweep.id).where(Sweep.id == new.id)) is not None:
        return False
    project_id, task_id = await filed_under(session, new.project, new.task, unit=new.unit)
    values = {name: value for name, value in asdict(new).items() if name not in {"project", "task"}}
    values |= {"name": new.name or _unnamed(new.id), "project_id": project_id, "task_id": task_id}
    created = insert(Sweep).values(values).on_conflict_do_nothing(index_elements=[Sweep.id]).returning(Sweep.id)
    return await session.scalar(created) is not None


async def get_row(session: AsyncSession, sweep_id: UUID) -> SweepRow | None:
    """The sweep, or None."""
    found = (await session.execute(_rows().where(Sweep.id == sweep_id))).one_or_none()
    return None if found is None else (await _with_runs(session, [found]))[0]


async def get_rows(session: AsyncSession, sweep_ids: Sequence[UUID]) -> list[SweepRow]:
    """Those of the sweeps that there are, in this order."""
    rows = (await session.execute(_rows().where(Sweep.id.in_(sweep_ids)))).all()
    found = {row.sweep.id: row for row in await _with_runs(session, rows)}
    return [found[sweep_id] for sweep_id in dict.fromkeys(sweep_ids) if sweep_id in found]


BRANCH_STEPS = """
SELECT DISTINCT (details->>'step')::bigint AS step FROM sweep
WHERE run_id = $1 AND kind = 'branch' AND details->>'step' ~ '^[0-9]{1,15}$'
ORDER BY step LIMIT 50
"""


async def branch_steps(session: AsyncSession, run_id: UUID) -> list[int]:
    """The steps at which branches left a run that the session sees; the details are what somebody has sent."""
    return [row["step"] for row in await read(session, BRANCH_STEPS, run_id)]


async def hold(session: AsyncSession, sweep_id: UUID) -> bool:
    """True if the sweep exists; it cannot be deleted until the transaction ends."""
    held = select(Sweep.id).where(Sweep.id == sweep_id).with_for_update(read=True, key_share=True)
    return await session.scalar(held) is not None


async def list_page(session: AsyncSession, wanted: SweepFilter, *, limit: int, after: UUID | None) -> list[SweepRow]:
    """Sweeps, newest first; those behind the sweep `after`."""
    query = _rows().where(*_conditions(wanted)).order_by(Sweep.created_at.desc(), Sweep.id.desc()).limit(limit)
    if after is not None:
        last = aliased(Sweep)
        moment = select(last.created_at).where(last.id == after).scalar_subquery()
        query = query.where(tuple_(Sweep.created_at, Sweep.id) < tuple_(moment, after))
    return await _with_runs(session, (await session.execute(query)).all())


async def count(session: AsyncSession, wanted: SweepFilter) -> int:
    """How many sweeps the filter leaves."""
    found = select(func.count()).select_from(_rows().where(*_conditions(wanted)).subquery())
    return await session.scalar(found) or 0


async def remove(session: AsyncSession, sweep_id: UUID) -> bool:
    """True if the sweep existed; what was given with it is deleted, runs that are stored stay."""
    await placement.one_connection_a_node(session)
    # who attaches runs meanwhile holds the sweep: its runs are here once it is locked
    await session.execute(select(Sweep.id).where(Sweep.id == sweep_id).with_for_update())
    run_ids = (await session.scalars(select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id))).all()
    await session.execute(delete(SweepRun).where(SweepRun.sweep_id == sweep_id))
    await trials.file_anew(session, run_ids)
    project_id = await session.scalar(delete(Sweep).where(Sweep.id == sweep_id).returning(Sweep.project_id))
    if project_id is not None:
        await run_decisions.mark_project(session, project_id)
    return project_id is not None


async def attach(session: AsyncSession, sweep_id: UUID, runs: Sequence[NewSweepRun]) -> None:
    """Add runs in the order of their key, and replace those that the sweep has already."""
    rows = [asdict(run) | {"sweep_id": sweep_id} for run in sorted(runs, key=lambda run: run.run_id)]
    new = insert(SweepRun).values(rows)
    changed = {name: new.excluded[name] for name in NewSweepRun.__slots__ if name != "run_id"}
    await session.execute(new.on_conflict_do_update(index_elements=["run_id", "sweep_id"], set_=changed))
    await trials.file_anew(session, [run.run_id for run in runs])


async def detach(session: AsyncSession, sweep_id: UUID, run_ids: Sequence[UUID]) -> None:
    """Take runs out of the sweep; those that are stored stay."""
    if run_ids:
        await session.execute(delete(SweepRun).where(SweepRun.sweep_id == sweep_id, SweepRun.run_id.in_(run_ids)))
        await trials.file_anew(session, run_ids)


async def runs_of(session: AsyncSession, sweep_id: UUID) -> Sequence[SweepRun]:
    """Runs by batch size, learning rate and seed."""
    order = (SweepRun.batch_size, SweepRun.lr, SweepRun.seed, SweepRun.run_id)
    return (await session.scalars(select(SweepRun).where(SweepRun.sweep_id == sweep_id).order_by(*order))).all()


async def stored_runs(session: AsyncSession, project: str, run_ids: Sequence[UUID]) -> Sequence[Run]:
    """Those of the runs that this project has."""
    project_id = select(Project.id).where(Project.name == project).scalar_subquery()
    found = await session.scalars(select(Run).where(Run.id.in_(run_ids), Run.project_id == project_id))
    return found.all()


async def unswept_runs(
    session: AsyncSession, task_id: UUID, limit: int, *, of_optimizer: Run | None = None
) -> list[Run]:
    """Finished runs of a task that no sweep has, newest first.

    Args:
        session: Where to read.
        task_id: The task.
        limit: Of the runs.
        of_optimizer: A run whose optimizer they share; None: any.
    """
    is_swept = select(SweepRun.run_id).where(SweepRun.run_id == Run.id).exists()
    rows = (
        select(Run)
        .where(Run.task_id == task_id, Run.finish_status == "finished", ~Run.archived, ~is_swept)
        .order_by(Run.finished_at.desc().nulls_last(), Run.id)
        .limit(limit)
    )
    if of_optimizer is not None:
        rows = rows.where(Run.optimizer.is_not_distinct_from(of_optimizer.optimizer))
    return list(await session.scalars(rows))


async def names_of(session: AsyncSession, run: Run) -> tuple[str, str]:
    """Names of a run's project and task."""
    rows = select(Project.name, Task.name).join(Task, Task.project_id == Project.id).where(Task.id == run.task_id)
    project, task = (await session.execute(rows)).one()
    return project, task


_LOGGED = """
SELECT name FROM unnest($2::text[]) AS wanted(name)
WHERE EXISTS (SELECT FROM metric WHERE run_id = $1::uuid AND metric.name = wanted.name)
"""


async def logged(session: AsyncSession, run_id: UUID, names: Sequence[str]) -> set[str]:
    """Which of these metrics a run has logged."""
    return {row["name"] for row in await read(session, _LOGGED, run_id, list(names))}


async def _with_runs(session: AsyncSession, rows: Sequence[Row[Sweep, str, str]]) -> list[SweepRow]:
    sweep_ids = [row[0].id for row in rows]
    counts = select(SweepRun.sweep_id, func.count()).where(SweepRun.sweep_id.in_(sweep_ids))
    num_runs = dict((await session.execute(counts.group_by(SweepRun.sweep_id))).all()) if sweep_ids else {}
    return [SweepRow(*row, num_runs.get(row[0].id, 0)) for row in rows]


def _rows() -> Select[Sweep, str, str]:
    return (
        select(Sweep, Project.name, Task.name)
        .join(Project, Project.id == Sweep.project_id)
        .join(Task, Task.id == Sweep.task_id)
    )


def _conditions(wanted: SweepFilter) -> list[ColumnElement[bool]]:
    # what another server has measured has no runs here to show, and what one followed run says is no sweep
    conditions: list[ColumnElement[bool]] = [~Sweep.details.has_key(IMPORTED), Sweep.kind.in_(("sweep", "branch"))]
    if wanted.project is not None:
        conditions.append(Project.name == wanted.project)
    if wanted.task is not None:
        conditions.append(Task.name == wanted.task)
    if wanted.kind is not None:
        conditions.append(Sweep.kind == wanted.kind)
    if wanted.run_id is not None:
        conditions.append(Sweep.run_id == wanted.run_id)
    return conditions


# What a sweep's answers rest on, as a short text that changes with any of it.


async def version_of(session: AsyncSession, sweep_id: UUID) -> str:
    """A hash over the sweep's runs and the streams of those that are stored; of no run an empty text.

    It reads no curve. Every batch of records moves its stream's cursor and every attachment writes its row, and
    Postgres numbers the transaction that did it (`xmin`), so nothing changes without the hash.
    """
    return (await versions_of(session, [sweep_id]))[sweep_id]


async def versions_of(session: AsyncSession, sweep_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The version of each sweep, in one statement."""
    found = dict(await fetch(session, VERSIONS, list(sweep_ids)))
    return {sweep_id: found.get(sweep_id, "") for sweep_id in sweep_ids}
