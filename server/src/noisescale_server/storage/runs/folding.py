"""Trials of one sweep or reproduction as a single row of a list of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Subquery, and_, case, func, null, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage.platform.tables import Run, Sweep
from noisescale_server.storage.runs import filters
from noisescale_server.storage.runs.listing import SORTS, After, Sort

Sorted = ColumnElement[Any] | InstrumentedAttribute[Any]

ADVISED: Final = ("misfit", "saving")
"""Sorts by what a change would bring. Nobody changes a trial: it was meant to be off."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The trials that stand behind one row.

    Attributes:
        kind: "sweep", "branch" or "reproduction".
        id: Of the sweep; None of a reproduction, whose trials are those of one task.
        name: Of the sweep or the task.
        num_runs: Trials that the filter lets through.
        batch_low: Smallest batch in use among them, in examples.
        batch_high: Largest.
        loss: Lowest newest training loss.
    """

    kind: str
    id: UUID | None
    name: str
    num_runs: int
    batch_low: float | None
    batch_high: float | None
    loss: float | None


@dataclass(frozen=True, slots=True)
class Folded:
    """What the query says of a fold: whose trials these are, and what they hold."""

    trial_of: UUID
    num_runs: int
    batch_low: float | None
    batch_high: float | None
    loss: float | None


async def first_trials(
    session: AsyncSession, where: Sequence[ColumnElement[bool]], sort: Sort, *, limit: int, after: After | None
) -> dict[UUID, Folded]:
    """Of up to `limit` folds the first trial, in the order of a list, those behind `after` only.

    Args:
        session: Where to read.
        where: Which runs.
        sort: Their order.
        limit: Most of the folds.
        after: Where the page before ended.
    """
    columns = (Run.latest_global_batch.label("batch"), Run.latest_loss.label("loss"))
    matching = select(Run.id, sortable(sort).label("sorted_by"), Run.trial_of, *columns)
    placed = _placed(matching.where(*where, filters.is_trial()).subquery(), sort).subquery()
    first = select(placed).where(placed.c.place == 1)
    if after is not None:
        first = first.where(_is_behind(placed, sort, after))
    found = await session.execute(first.order_by(*_ordered(placed, sort)).limit(limit))
    return {row.id: Folded(row.trial_of, row.num_runs, row.batch_low, row.batch_high, row.loss) for row in found}


def _placed(matching: Subquery, sort: Sort) -> Select[Any]:
    fold = matching.c.trial_of
    order = matching.c.sorted_by.desc() if sort.is_descending else matching.c.sorted_by.asc()
    return select(
        matching.c.id,
        matching.c.sorted_by,
        fold,
        func.row_number().over(partition_by=fold, order_by=(order.nulls_last(), matching.c.id)).label("place"),
        func.count().over(partition_by=fold).label("num_runs"),
        func.min(matching.c.batch).over(partition_by=fold).label("batch_low"),
        func.max(matching.c.batch).over(partition_by=fold).label("batch_high"),
        func.min(matching.c.loss).over(partition_by=fold).label("loss"),
    )


async def merged(session: AsyncSession, run_ids: Sequence[UUID], sort: Sort, *, limit: int) -> list[tuple[UUID, Any]]:
    """The first of these runs and trials in the order of a folded list, each with the value that it is sorted by."""
    value = sortable(sort)
    order = value.desc() if sort.is_descending else value.asc()
    query = select(Run.id, value).where(Run.id.in_(run_ids)).order_by(order.nulls_last(), Run.id).limit(limit)
    return [(run_id, its_value) for run_id, its_value in await session.execute(query)]


def sortable(sort: Sort) -> Sorted:
    """What a folded list is sorted by: trials come last where it goes by advice."""
    value = SORTS[sort.column]
    return case((filters.is_trial(), null()), else_=value) if sort.column in ADVISED else value


def _ordered(of: Subquery, sort: Sort) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    ordered = of.c.sorted_by.desc() if sort.is_descending else of.c.sorted_by.asc()
    return ordered.nulls_last(), of.c.id


def _is_behind(of: Subquery, sort: Sort, after: After) -> ColumnElement[bool]:
    column = of.c.sorted_by
    if after.value is None:
        return and_(column.is_(None), of.c.id > after.run_id)
    further = column < after.value if sort.is_descending else column > after.value
    return or_(further, and_(column == after.value, of.c.id > after.run_id), column.is_(None))


async def named(
    session: AsyncSession, rows: Sequence[tuple[Run, str]], found: Mapping[UUID, Folded]
) -> list[Fold | None]:
    """The folds of rows in order, None of a run that is no trial.

    Args:
        session: Where names of sweeps are read.
        rows: Runs with the name of their task.
        found: Folds by their first trials.
    """
    wanted = {one.trial_of for one in found.values()}
    named = select(Sweep.id, Sweep.kind, Sweep.name).where(Sweep.id.in_(wanted))
    sweeps = {row.id: row for row in await session.execute(named)} if wanted else {}
    return [_fold(found[run.id], run, task, sweeps) if run.id in found else None for run, task in rows]


def _fold(one: Folded, run: Run, task: str, sweeps: Mapping[UUID, Any]) -> Fold:
    held = (one.num_runs, one.batch_low, one.batch_high, one.loss)
    if one.trial_of == run.task_id:
        return Fold("reproduction", None, task, *held)
    # a sweep that is deleted meanwhile leaves its trials behind
    sweep = sweeps.get(one.trial_of)
    return Fold("sweep", one.trial_of, task, *held) if sweep is None else Fold(sweep.kind, sweep.id, sweep.name, *held)
