"""Reading runs in pages: sort, keyset cursor, groups; and the few changes a run allows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, bindparam, case, delete, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage.platform import row_tables
from noisescale_server.storage.platform.driver import plan_for_lists, sqlstate_of
from noisescale_server.storage.platform.tables import DeletedRun, Project, Run, Stream, StreamPlace, Table, Task
from noisescale_server.storage.recommendation import decision_word
from noisescale_server.storage.runs import folding, listed, listing, trials
from noisescale_server.storage.runs.filters import CONFIG, RunFilter, conditions, has_status, has_words, is_no_trial
from noisescale_server.storage.runs.folding import ADVISED, Fold, Folded
from noisescale_server.storage.runs.listing import After, Count, Sort

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
    """Rows of a list, and how many there are in all."""

    rows: list[RunRow]
    count: Count


MOST_GROUPED = 50_000
"""Runs that are grouped: where there are more, the newest of them."""


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
class RunGroups:
    """Groups of runs; of the newest ones where `is_exact` is false."""

    groups: list[RunGroup]
    is_exact: bool


async def get_row(session: AsyncSession, run_id: UUID, *, is_locked: bool = False) -> RunRow | None:
    """The run with its names, or None; locked until the transaction ends when asked for."""
    query = _ONE_ROW.with_for_update(of=Run) if is_locked else _ONE_ROW
    found = (await session.execute(query, {"run_id": run_id})).one_or_none()
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
    await plan_for_lists(session)
    where = await conditions(session, replace(wanted, text=None))
    of_words = [has_words(wanted.text)] if wanted.text else []
    alone = [*where, is_no_trial()] if is_folded else where
    places = await listing.places_of_page(session, alone, sort, limit=limit, after=after, words=wanted.text)
    folds: dict[UUID, Folded] = {}
    # in a list by advice they come last
    if is_folded and (sort.column not in ADVISED or len(places) < limit or places[-1][1] is None):
        folds = await folding.first_trials(session, [*where, *of_words], sort, limit=limit, after=after)
    if folds:
        places = await folding.merged(session, [*(run_id for run_id, _ in places), *folds], sort, limit=limit)
    values = dict(places)
    rows = await listed.named(session, list(values))
    found = await folding.named(session, [(run, task) for run, _, task in rows], folds)
    listed_rows = [
        RunRow(run, project, task, values[run.id], fold) for (run, project, task), fold in zip(rows, found, strict=True)
    ]
    if after is None and len(listed_rows) < limit:
        # all of them
        num_runs = sum(1 if one is None else one.num_runs for one in found)
        return RunRows(listed_rows, Count(len(listed_rows), num_runs, True))
    return RunRows(listed_rows, await listing.count(session, [*where, *of_words], is_folded=is_folded))


async def is_pattern(session: AsyncSession, pattern: str) -> bool:
    """Whether Postgres reads a text as a regular expression."""
    try:
        async with session.begin_nested():
            await session.scalar(select(literal("").op("~*")(pattern)))
    except DBAPIError as error:
        if sqlstate_of(error) == INVALID_PATTERN:
            return False
        raise
    return True


async def change(session: AsyncSession, run_id: UUID, values: dict[str, Any]) -> None:
    """Set columns of a run."""
    await session.execute(update(Run).where(Run.id == run_id).values(values))
    if not values.keys().isdisjoint({"tags", "task_id"}):
        await trials.file_anew(session, [run_id])


async def summary(session: AsyncSession, wanted: RunFilter, by: str, *, limit: int) -> RunGroups:
    """The largest groups of runs that agree in `by`; largest first.

    Args:
        session: Where to read.
        wanted: Which runs.
        by: A name of `GROUPS`, "status", or "config." and a key.
        limit: Of the groups.
    """
    await plan_for_lists(session)
    value = _grouped(by, wanted)
    where = await conditions(session, wanted)
    # medians of a million take seconds
    newest = select(Run.id).where(*where).order_by(Run.heard_at.desc()).limit(MOST_GROUPED)

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
            func.sum(func.count()).over(),
        )
        .select_from(Run)
        .join(Project, Project.id == Run.project_id)
        .join(Task, Task.id == Run.task_id)
        .where(Run.id.in_(newest))
        # by its place: the same expression with a bound key twice would not be the same for Postgres
        .group_by(text("1"))
        .order_by(func.count().desc(), text("1 NULLS LAST"))
        .limit(limit)
    )
    rows = (await session.execute(query)).all()
    return RunGroups([RunGroup(*row[:7]) for row in rows], is_exact=not rows or rows[0][7] < MOST_GROUPED)


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


async def projects(session: AsyncSession, *, are_counted: bool) -> list[tuple[str, int | None, list[str]]]:
    """(project, number of runs or None, its task names in order) of every project, by name."""
    # the table of runs by itself: it is on other nodes than small tables where there are several
    counts = select(Run.project_id, func.count()).group_by(Run.project_id)
    num_runs = dict((await session.execute(counts)).all()) if are_counted else {}
    none = 0 if are_counted else None
    tasks = select(func.array_agg(Task.name)).where(Task.project_id == Project.id).correlate(Project).scalar_subquery()
    found = await session.execute(select(Project.id, Project.name, tasks).order_by(Project.name))
    return [(name, num_runs.get(project_id, none), sorted(tasks or [])) for project_id, name, tasks in found]


def _rows() -> Select[Run, str, str]:
    return (
        select(Run, Project.name, Task.name)
        .join(Project, Project.id == Run.project_id)
        .join(Task, Task.id == Run.task_id)
    )


# built once: that takes as long as to ask it
_ONE_ROW = _rows().where(Run.id == bindparam("run_id"))
