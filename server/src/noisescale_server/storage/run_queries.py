"""Reading runs in pages: filters, sort, keyset cursor; and the few changes a run allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    Text,
    and_,
    case,
    delete,
    func,
    or_,
    select,
    text,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage import row_tables
from noisescale_server.storage.run_decisions import decision_word, has_diverged
from noisescale_server.storage.tables import DeletedRun, Project, Run, Stream, Table, Task

assert row_tables, "its classes belong to the same metadata, and `remove()` goes through all of it"

SORT_COLUMNS: dict[str, InstrumentedAttribute[Any]] = {
    "name": Run.name,
    "created_at": Run.created_at,
    "updated_at": Run.updated_at,
    "last_step": Run.latest_step,
    "loss": Run.latest_loss,
    "noise_scale": Run.noise_scale_value,
    "global_batch": Run.latest_global_batch,
    "example_efficiency": Run.example_efficiency,
}

# the cost of a batch against the best one rises with this alone, for a reader who values steps and examples alike
MISFIT: ColumnElement[Any] = case(
    (
        and_(Run.noise_scale_state == "resolved", Run.noise_scale_value > 0, Run.latest_global_batch > 0),
        func.abs(func.ln(Run.latest_global_batch / Run.noise_scale_value)),
    )
)
SORTS: dict[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {**SORT_COLUMNS, "misfit": MISFIT}
"""What a list of runs can be sorted by."""

GROUPS: dict[str, InstrumentedAttribute[Any]] = {
    "project": Project.name,
    "task": Task.name,
    "optimizer": Run.optimizer,
    "family": Run.family,
    "device": Run.device,
}
"""What runs can be grouped by, besides the keys of their configs."""
CONFIG = "config."

DELETE_TIMEOUT = "10min"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with the names of its project and task; in a list with the value that it is sorted by."""

    run: Run
    project: str
    task: str
    sorted_by: Any = None


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that agree in something: how many, and the medians of what is known of them; in examples.

    Attributes:
        value: What they agree in; None for those that do not say it.
        num_runs: How many.
        num_resolved: Those with a resolved noise scale.
        noise_scale: Median over the resolved ones.
        global_batch: Median of the batch in use.
        loss: Median of the newest training loss.
    """

    value: str | None
    num_runs: int
    num_resolved: int
    noise_scale: float | None
    global_batch: float | None
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; None or empty means any.

    Attributes:
        statuses: Any of running, silent, crashed, finished, failed, and diverged, which may go with any of the others.
        tags: All of them.
        text: Part of the name, in any case.
        silent_before: Runs without data since this moment are silent.
        crashed_before: Runs without data since this moment have crashed.
        updated_after: Runs with data since this moment.
        decisions: Any of them.
    """

    silent_before: datetime
    crashed_before: datetime
    project: str | None = None
    task: str | None = None
    statuses: Sequence[str] = ()
    tags: Sequence[str] = ()
    text: str | None = None
    archived: bool = False
    batch_min: float | None = None
    batch_max: float | None = None
    noise_scale_min: float | None = None
    noise_scale_max: float | None = None
    ids: Sequence[UUID] | None = None
    updated_after: datetime | None = None
    decisions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sort:
    """A name of `SORTS` and its direction; nulls come last either way."""

    column: str
    is_descending: bool


@dataclass(frozen=True, slots=True)
class After:
    """The last row of the page before: its value in the sorted column and its id."""

    value: Any
    run_id: UUID


async def get_row(session: AsyncSession, run_id: UUID, *, is_locked: bool = False) -> RunRow | None:
    """The run with its names, or None; locked until the transaction ends when asked for."""
    query = _rows().where(Run.id == run_id)
    if is_locked:
        query = query.with_for_update(of=Run)
    found = (await session.execute(query)).one_or_none()
    return RunRow(*found) if found else None


async def list_page(
    session: AsyncSession, wanted: RunFilter, sort: Sort, *, limit: int, after: After | None
) -> tuple[list[RunRow], int]:
    """Up to `limit` runs in order, those behind `after` only, and how many the filter lets through in all."""
    column = SORTS[sort.column].label("sorted_by")
    # Ids first: sorting whole rows would carry every config through the sort. Counted in the same pass over the runs,
    # which costs more than either.
    matching = select(Run.id, column, func.count().over().label("total")).where(*_conditions(wanted)).subquery()
    page = select(matching).order_by(*_ordered(matching, sort)).limit(limit)
    if after is not None:
        page = page.where(_is_behind(matching, sort, after))
    found = page.subquery()
    query = _rows().join(found, found.c.id == Run.id).add_columns(found.c.sorted_by, found.c.total)
    rows = (await session.execute(query.order_by(*_ordered(found, sort)))).all()
    if not rows and after is not None:
        return [], await count(session, wanted)
    return [RunRow(*row[:4]) for row in rows], rows[0].total if rows else 0


async def count(session: AsyncSession, wanted: RunFilter) -> int:
    """How many runs the filter lets through."""
    found = await session.scalar(select(func.count()).select_from(Run).where(*_conditions(wanted)))
    return found or 0


async def change(session: AsyncSession, run_id: UUID, values: dict[str, Any]) -> None:
    """Set columns of a run."""
    await session.execute(update(Run).where(Run.id == run_id).values(values))


async def summary(session: AsyncSession, wanted: RunFilter, by: str, *, limit: int) -> list[RunGroup]:
    """The largest groups of runs that agree in `by`, a name of `GROUPS` or "config." and a key; largest first."""
    value = GROUPS[by] if by in GROUPS else Run.config[by.removeprefix(CONFIG)].astext

    def median(column: InstrumentedAttribute[Any], *, of_resolved: bool = False) -> ColumnElement[Any]:
        found = func.percentile_cont(0.5).within_group(column)
        return found.filter(Run.noise_scale_state == "resolved") if of_resolved else found

    query = (
        select(
            value.label("value"),
            func.count(),
            func.count().filter(Run.noise_scale_state == "resolved"),
            median(Run.noise_scale_value, of_resolved=True),
            median(Run.latest_global_batch),
            median(Run.latest_loss),
        )
        .select_from(Run)
        .join(Project, Project.id == Run.project_id)
        .join(Task, Task.id == Run.task_id)
        .where(*_conditions(wanted))
        # by its place: the same expression with a bound key twice would not be the same for Postgres
        .group_by(text("1"))
        .order_by(func.count().desc(), text("1 NULLS LAST"))
        .limit(limit)
    )
    return [RunGroup(*found) for found in await session.execute(query)]


async def change_many(
    session: AsyncSession,
    run_ids: Sequence[UUID],
    *,
    archived: bool | None,
    added_tags: Sequence[str],
    removed_tags: Sequence[str],
    max_tags: int,
) -> tuple[list[UUID], list[UUID]]:
    """The runs that exist and the ones among them that were left as they are, since they would get too many tags.

    Rows are locked in the order of their ids, so that two changes of the same runs wait for each other.
    """
    query = select(Run.id, Run.tags).where(Run.id.in_(run_ids)).order_by(Run.id).with_for_update()
    left: list[UUID] = []
    found = [(run_id, tags) for run_id, tags in await session.execute(query)]
    for run_id, tags in found:
        kept = [tag for tag in tags if tag not in removed_tags]
        wanted = [*kept, *(tag for tag in added_tags if tag not in kept)]
        if len(wanted) > max_tags:
            left.append(run_id)
            continue
        values: dict[str, Any] = {} if wanted == tags else {"tags": wanted}
        values |= {} if archived is None else {"archived": archived}
        if values:
            await change(session, run_id, values)
    return [run_id for run_id, _ in found], left


async def task_id(session: AsyncSession, project_id: UUID, name: str, *, unit: str, family: str | None) -> UUID:
    """The id of a task of the project, created when it is new."""
    task = insert(Task).values(project_id=project_id, name=name, unit=unit, family=family)
    await session.execute(task.on_conflict_do_nothing())
    return (await session.scalars(select(Task.id).where(Task.project_id == project_id, Task.name == name))).one()


async def remove(session: AsyncSession, run_id: UUID) -> bool:
    """True if the run was there; its rows in every table are deleted, in this transaction, and its id is kept.

    Locks the streams before the run, as ingestion does, so that the two wait for each other instead of dying.
    """
    await session.execute(text(f"SET LOCAL statement_timeout = '{DELETE_TIMEOUT}'"))
    await session.execute(select(Stream.id).where(Stream.run_id == run_id).order_by(Stream.id).with_for_update())
    if await get_row(session, run_id, is_locked=True) is None:
        return False
    for table in reversed(Table.metadata.sorted_tables):
        if "run_id" in table.columns:
            await session.execute(delete(table).where(table.c.run_id == run_id))
    await session.execute(delete(Run).where(Run.id == run_id))
    await session.execute(insert(DeletedRun).values(id=run_id).on_conflict_do_nothing())
    return True


async def count_by_project(session: AsyncSession) -> list[tuple[str, int, list[str]]]:
    """(project, number of runs, its task names in order) of every project, by name."""
    num_runs = select(func.count()).where(Run.project_id == Project.id).correlate(Project).scalar_subquery()
    tasks = select(func.array_agg(Task.name)).where(Task.project_id == Project.id).correlate(Project).scalar_subquery()
    found = await session.execute(select(Project.name, num_runs, tasks).order_by(Project.name))
    return [(name, runs, sorted(tasks or [])) for name, runs, tasks in found]


def _rows() -> Select[Run, str, str]:
    return (
        select(Run, Project.name, Task.name)
        .join(Project, Project.id == Run.project_id)
        .join(Task, Task.id == Run.task_id)
    )


def _ordered(of: Subquery, sort: Sort) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    ordered = of.c.sorted_by.desc() if sort.is_descending else of.c.sorted_by.asc()
    return ordered.nulls_last(), of.c.id


def _is_behind(of: Subquery, sort: Sort, after: After) -> ColumnElement[bool]:
    column = of.c.sorted_by
    if after.value is None:
        return and_(column.is_(None), of.c.id > after.run_id)
    further = column < after.value if sort.is_descending else column > after.value
    return or_(further, and_(column == after.value, of.c.id > after.run_id), column.is_(None))


def _conditions(wanted: RunFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [Run.archived == wanted.archived]
    project_id = select(Project.id).where(Project.name == wanted.project).scalar_subquery()
    if wanted.project is not None:
        conditions.append(Run.project_id == project_id)
    if wanted.task is not None:
        conditions.append(Run.task_id.in_(select(Task.id).where(Task.name == wanted.task)))
    if wanted.statuses:
        conditions.append(or_(*(_has_status(status, wanted) for status in wanted.statuses)))
    if wanted.tags:
        conditions.append(type_coerce(Run.tags, ARRAY(Text)).contains(list(wanted.tags)))
    if wanted.text:
        conditions.append(Run.name.icontains(wanted.text, autoescape=True))
    if wanted.ids is not None:
        conditions.append(Run.id.in_(wanted.ids))
    if wanted.updated_after is not None:
        conditions.append(Run.updated_at > wanted.updated_after)
    if wanted.decisions:
        conditions.append(decision_word().in_(wanted.decisions))
    return conditions + _ranges(wanted)


def _ranges(wanted: RunFilter) -> list[ColumnElement[bool]]:
    bounds = (
        (wanted.batch_min, Run.latest_global_batch.__ge__),
        (wanted.batch_max, Run.latest_global_batch.__le__),
        (wanted.noise_scale_min, Run.noise_scale_value.__ge__),
        (wanted.noise_scale_max, Run.noise_scale_value.__le__),
    )
    return [compare(bound) for bound, compare in bounds if bound is not None]


def _has_status(status: str, wanted: RunFilter) -> ColumnElement[bool]:
    is_open = Run.finish_status.is_(None)
    match status:
        case "diverged":
            return has_diverged()
        case "running":
            return and_(is_open, Run.updated_at > wanted.silent_before)
        case "silent":
            return and_(is_open, Run.updated_at <= wanted.silent_before, Run.updated_at > wanted.crashed_before)
        case "crashed":
            return and_(is_open, Run.updated_at <= wanted.crashed_before)
        case _:
            return Run.finish_status == status
