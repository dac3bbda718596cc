"""Reading runs in pages: sort, keyset cursor, groups; and the few changes a run allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Subquery, and_, case, delete, func, literal, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage.platform import row_tables
from noisescale_server.storage.platform.tables import DeletedRun, Project, Run, Stream, StreamPlace, Table, Task
from noisescale_server.storage.recommendation.decisions import CHANGES, decision_word
from noisescale_server.storage.runs import folding
from noisescale_server.storage.runs.filters import CONFIG, RunFilter, conditions, has_status
from noisescale_server.storage.runs.folding import Fold, FoldKey

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
# of a run that is to change its batch; a divergence says nothing of the batch
SAVING: ColumnElement[Any] = case((decision_word().in_(CHANGES), Run.decision_saving))
SORTS: dict[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    **SORT_COLUMNS,
    "misfit": MISFIT,
    "saving": SAVING,
}
"""What a list of runs can be sorted by."""

GROUPS: dict[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    "project": Project.name,
    "task": Task.name,
    "optimizer": Run.optimizer,
    "family": Run.family,
    "device": Run.device,
    "decision": decision_word(),
}
"""What runs can be grouped by, besides their status and the keys of their configs."""
STATUS = "status"
OPEN_STATUSES = ("running", "silent", "crashed")
"""What a run is called that has not said how it ended."""
_FOLD = ("key", "num_runs", "batch_low", "batch_high", "loss")

DELETE_TIMEOUT = "10min"
INVALID_PATTERN = "2201B"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with the names of its project and task; in a list with the value that it is sorted by, and its fold."""

    run: Run
    project: str
    task: str
    sorted_by: Any = None
    fold: Fold | None = None


@dataclass(frozen=True, slots=True)
class RunRows:
    """Rows of a list, how many there are in all, and how many runs these stand for."""

    rows: list[RunRow]
    total: int
    num_runs: int


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that agree in something: how many, and the medians of what is known of them; in examples.

    Attributes:
        value: What they agree in; None for those that do not say it.
        num_runs: How many.
        num_resolved: Those with a resolved noise scale.
        num_silent: Those that have sent nothing for a while and have not crashed.
        noise_scale: Median over the resolved ones.
        global_batch: Median of the batch in use.
        loss: Median of the newest training loss.
    """

    value: str | None
    num_runs: int
    num_resolved: int
    num_silent: int
    noise_scale: float | None
    global_batch: float | None
    loss: float | None


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
    session: AsyncSession,
    wanted: RunFilter,
    sort: Sort,
    *,
    limit: int,
    after: After | None,
    is_folded: bool = False,
) -> RunRows:
    """Up to `limit` runs in order, those behind `after` only; folded: the trials of each sweep as one row."""
    # Ids first: sorting whole rows would carry every config through the sort. Counted in the same pass over the runs,
    # which costs more than either.
    if is_folded:
        column = folding.sortable(sort.column, SORTS[sort.column])
        matching = folding.folded(wanted, column, is_descending=sort.is_descending)
    else:
        total = func.count().over().label("total")
        columns = (SORTS[sort.column].label("sorted_by"), total, total.label("num_all"))
        matching = select(Run.id, *columns).where(*conditions(wanted)).subquery()
    page = select(matching).order_by(*_ordered(matching, sort)).limit(limit)
    if after is not None:
        page = page.where(_is_behind(matching, sort, after))
    found = page.subquery()
    extra = [found.c[name] for name in _FOLD] if is_folded else []
    query = _rows().join(found, found.c.id == Run.id)
    query = query.add_columns(found.c.sorted_by, found.c.total, found.c.num_all, *extra)
    rows = (await session.execute(query.order_by(*_ordered(found, sort)))).all()
    if not rows:
        num_runs = await count(session, wanted) if after is not None else 0
        return RunRows([], num_runs, num_runs)
    folds: Sequence[Fold | None] = [None] * len(rows)
    if is_folded:
        keys = [FoldKey(**{name: getattr(row, name) for name in _FOLD}) for row in rows]
        folds = await folding.named(session, keys, [row[2] for row in rows])
    listed = [RunRow(*row[:4], fold) for row, fold in zip(rows, folds, strict=True)]
    return RunRows(listed, rows[0].total, rows[0].num_all)


async def count(session: AsyncSession, wanted: RunFilter) -> int:
    """How many runs the filter lets through."""
    found = await session.scalar(select(func.count()).select_from(Run).where(*conditions(wanted)))
    return found or 0


async def is_pattern(session: AsyncSession, pattern: str) -> bool:
    """Whether Postgres reads a text as a regular expression."""
    try:
        async with session.begin_nested():
            await session.scalar(select(literal("").op("~*")(pattern)))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == INVALID_PATTERN:
            return False
        raise
    return True


async def change(session: AsyncSession, run_id: UUID, values: dict[str, Any]) -> None:
    """Set columns of a run."""
    await session.execute(update(Run).where(Run.id == run_id).values(values))


async def summary(session: AsyncSession, wanted: RunFilter, by: str, *, limit: int) -> list[RunGroup]:
    """The largest groups of runs that agree in `by`; largest first.

    Args:
        session: Where to read.
        wanted: Which runs.
        by: A name of `GROUPS`, "status", or "config." and a key.
        limit: Of the groups.
    """
    value = _grouped(by, wanted)

    def median(column: InstrumentedAttribute[Any], *, of_resolved: bool = False) -> ColumnElement[Any]:
        found = func.percentile_cont(0.5).within_group(column)
        return found.filter(Run.noise_scale_state == "resolved") if of_resolved else found

    query = (
        select(
            value.label("value"),
            func.count(),
            func.count().filter(Run.noise_scale_state == "resolved"),
            func.count().filter(has_status("silent", wanted)),
            median(Run.noise_scale_value, of_resolved=True),
            median(Run.latest_global_batch),
            median(Run.latest_loss),
        )
        .select_from(Run)
        .join(Project, Project.id == Run.project_id)
        .join(Task, Task.id == Run.task_id)
        .where(*conditions(wanted))
        # by its place: the same expression with a bound key twice would not be the same for Postgres
        .group_by(text("1"))
        .order_by(func.count().desc(), text("1 NULLS LAST"))
        .limit(limit)
    )
    return [RunGroup(*found) for found in await session.execute(query)]


def _grouped(by: str, wanted: RunFilter) -> ColumnElement[Any] | InstrumentedAttribute[Any]:
    if by == STATUS:
        return case(*((has_status(word, wanted), word) for word in OPEN_STATUSES), else_=Run.finish_status)
    return GROUPS[by] if by in GROUPS else Run.config[by.removeprefix(CONFIG)].astext


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
    found: list[UUID] = []
    left: list[UUID] = []
    # one by one: rows that lie on several nodes cannot be locked by one statement
    for run_id in sorted(set(run_ids)):
        tags = await session.scalar(select(Run.tags).where(Run.id == run_id).with_for_update())
        if tags is None:
            continue
        found.append(run_id)
        kept = [tag for tag in tags if tag not in removed_tags]
        wanted = [*kept, *(tag for tag in added_tags if tag not in kept)]
        if len(wanted) > max_tags:
            left.append(run_id)
            continue
        values: dict[str, Any] = {} if wanted == tags else {"tags": wanted}
        values |= {} if archived is None else {"archived": archived}
        if values:
            await change(session, run_id, values)
    return found, left


async def task_id(session: AsyncSession, project_id: UUID, name: str, *, unit: str, family: str | None) -> UUID:
    """The id of a task of the project, created when it is new."""
    task = insert(Task).values(project_id=project_id, name=name, unit=unit, family=family)
    await session.execute(task.on_conflict_do_nothing())
    return (await session.scalars(select(Task.id).where(Task.project_id == project_id, Task.name == name))).one()


async def remove(session: AsyncSession, run_id: UUID) -> bool:
    """True if the run was there; it is deleted in this transaction, and its id is kept.

    What it has measured goes afterwards, some rows at a time (`storage/retention/purging.py`): nobody sees it any more.

    Locks the streams before the run, as ingestion does, so that the two wait for each other instead of dying.
    """
    await session.execute(text(f"SET LOCAL statement_timeout = '{DELETE_TIMEOUT}'"))
    await session.execute(select(Stream.id).where(Stream.run_id == run_id).order_by(Stream.id).with_for_update())
    if await get_row(session, run_id, is_locked=True) is None:
        return False
    # one may have begun until the run was locked
    stream_ids = (await session.scalars(select(Stream.id).where(Stream.run_id == run_id))).all()
    await session.execute(delete(StreamPlace).where(StreamPlace.stream_id.in_(stream_ids)))
    for table in reversed(Table.metadata.sorted_tables):
        is_purged_later = table is StreamPlace.__table__ or table.name in row_tables.GONE_LATER
        if "run_id" in table.columns and not is_purged_later:
            await session.execute(delete(table).where(table.c.run_id == run_id))
    await session.execute(delete(Run).where(Run.id == run_id))
    await session.execute(insert(DeletedRun).values(id=run_id).on_conflict_do_nothing())
    return True


async def count_by_project(session: AsyncSession) -> list[tuple[str, int, list[str]]]:
    """(project, number of runs, its task names in order) of every project, by name."""
    # the table of runs by itself: it is on other nodes than small tables where there are several
    counts = select(Run.project_id, func.count()).group_by(Run.project_id)
    num_runs = dict((await session.execute(counts)).all())
    tasks = select(func.array_agg(Task.name)).where(Task.project_id == Project.id).correlate(Project).scalar_subquery()
    found = await session.execute(select(Project.id, Project.name, tasks).order_by(Project.name))
    return [(name, num_runs.get(project_id, 0), sorted(tasks or [])) for project_id, name, tasks in found]


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
