"""One page of a list of runs, read along an index: no list is sorted as a whole, and none is counted to its end.

A page takes two looks: at the runs whose sorted value is known, in its order, and, where these are not enough, at the
others, which come last by their ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Result, Select, Subquery, and_, case, func, literal, not_, null, or_, select, true
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.recommendation import CHANGES, is_one_of
from noisescale_server.storage.runs.filters import has_words, has_words_among, is_no_trial, is_trial
from noisescale_server.storage.runs.runs import BEHIND

MOST_COUNTED: Final = 10_000
"""Runs of a list that are counted; where there are more, a page says so."""

MOST_TRIED: Final = 3_000
"""Runs of a list whose names are looked at before the index of names is asked."""

Sorted = ColumnElement[Any] | InstrumentedAttribute[Any]

SORT_COLUMNS: Final[dict[str, InstrumentedAttribute[Any]]] = {
    "name": Run.name,
    "created_at": Run.created_at,
    "updated_at": Run.updated_at,
    "last_step": Run.latest_step,
    "loss": Run.latest_loss,
    "noise_scale": Run.noise_scale_value,
    "global_batch": Run.latest_global_batch,
    "example_efficiency": Run.example_efficiency,
}
# the cost of a batch against the best one rises with the misfit alone, for a reader who values steps and examples alike
BY_INDEX: Final[dict[str, InstrumentedAttribute[Any]]] = {
    **SORT_COLUMNS,
    "misfit": Run.misfit,
    "saving": Run.decision_saving,
}
# of a run that is to change its batch; a divergence says nothing of the batch
_SAVES: Final = is_one_of(CHANGES)


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


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of a list, and the runs behind them; where `is_exact` is false, there are more of both."""

    rows: int
    runs: int
    is_exact: bool


SORTS: Final[dict[str, Sorted]] = {
    **BY_INDEX,
    "saving": case((_SAVES, Run.decision_saving)),
}
"""What a list of runs can be sorted by, as a page shows it."""


async def places_of_page(
    session: AsyncSession,
    where: Sequence[ColumnElement[bool]],
    sort: Sort,
    *,
    limit: int,
    after: After | None,
    words: str | None = None,
) -> list[tuple[UUID, Any]]:
    """Up to `limit` runs in order, those behind `after` only, each with the value that it is sorted by.

    Args:
        session: Where to read.
        where: Which runs.
        sort: Their order.
        limit: Most of them.
        after: Where the page before ended.
        words: What is searched for.
    """
    known, unknown = _parts(sort)
    value = BY_INDEX[sort.column]
    found: list[tuple[UUID, Any]] = []
    if after is None or after.value is not None:
        known = [*where, *known, *_behind(sort, after)]
        if words and sort.column != "updated_at":
            found = await _among_the_first(session, known, sort, words, limit)
            if len(found) == limit:
                return found
    where = [*where, has_words(words)] if words else where
    if after is None or after.value is not None:
        query = select(Run.id, value).where(*known, *([has_words(words)] if words else ()))
        query = query.where(*await _heard(session, query, sort, limit))
        found = _places(await session.execute(query.order_by(_order(value, sort), Run.id).limit(limit)))
    if unknown is not None and len(found) < limit:
        rest = select(Run.id, null()).select_from(Run).where(*where, unknown)
        if after is not None and after.value is None:
            rest = rest.where(Run.id > after.run_id)
        found += _places(await session.execute(rest.order_by(Run.id).limit(limit - len(found))))
    return found


def _places(found: Result[UUID, Any]) -> list[tuple[UUID, Any]]:
    return [(run_id, value) for run_id, value in found]


async def _among_the_first(
    session: AsyncSession, where: Sequence[ColumnElement[bool]], sort: Sort, words: str, limit: int
) -> list[tuple[UUID, Any]]:
    """Runs with the words among the first of the list: all of a page where the words are common.

    How common they are Postgres does not know: it takes each three letters for a matter of their own.
    """
    value = BY_INDEX[sort.column]
    first = select(Run.id, Run.name, value.label("value")).where(*where)
    some = first.order_by(_order(value, sort), Run.id).limit(MOST_TRIED).subquery()
    found = select(some.c.id, some.c.value).where(has_words_among(words, some))
    return _places(await session.execute(found.order_by(_order(some.c.value, sort), some.c.id).limit(limit)))


def _order(column: Sorted, sort: Sort) -> ColumnElement[Any]:
    return column.desc() if sort.is_descending else column.asc()


def _parts(sort: Sort) -> tuple[list[ColumnElement[bool]], ColumnElement[bool] | None]:
    column = BY_INDEX[sort.column]
    if not column.property.columns[0].nullable:
        return [], None
    is_known = column.is_not(None)
    if sort.column == "saving":
        return [_SAVES, is_known], or_(not_(func.coalesce(_SAVES, False)), column.is_(None))
    return [is_known], column.is_(None)


def _behind(sort: Sort, after: After | None) -> list[ColumnElement[bool]]:
    if after is None:
        return []
    column = BY_INDEX[sort.column]
    further, not_before = (
        (column < after.value, column <= after.value)
        if sort.is_descending
        else (column > after.value, column >= after.value)
    )
    # the second one is where an index begins
    return [or_(further, and_(column == after.value, Run.id > after.run_id)), not_before]


async def _heard(session: AsyncSession, query: Select[Any], sort: Sort, limit: int) -> list[ColumnElement[bool]]:
    """Where the first of a list by the moment of the last data are along the index of when runs were heard of."""
    if sort.column != "updated_at":
        return []
    column = Run.heard_at
    moments = query.with_only_columns(column).order_by(_order(column, sort)).offset(limit - 1).limit(1)
    last = await session.scalar(moments)
    if last is None:
        return []
    return [column >= last - BEHIND if sort.is_descending else column <= last + BEHIND]


async def count(session: AsyncSession, where: Sequence[ColumnElement[bool]], *, is_folded: bool) -> Count:
    """How many rows and runs there are, up to `MOST_COUNTED` runs.

    Args:
        session: Where to read.
        where: Which runs.
        is_folded: Whether the trials of a sweep or a task are one row.
    """
    if not is_folded:
        runs = await session.scalar(select(func.count()).select_from(_first(literal(1), *where))) or 0
        return Count(min(runs, MOST_COUNTED), min(runs, MOST_COUNTED), runs <= MOST_COUNTED)
    # apart: the runs that are no trial are counted along an index, and there are few trials
    alone = select(func.count().label("num")).select_from(_first(literal(1), *where, is_no_trial())).subquery()
    of_folds = _first(Run.trial_of, *where, is_trial())
    trials = select(func.count().label("num"), func.count(of_folds.c.trial_of.distinct()).label("folds")).subquery()
    both = select(alone.c.num, trials.c.num, trials.c.folds).select_from(alone.join(trials, true()))
    num_alone, num_trials, folds = (await session.execute(both)).one()
    runs = num_alone + num_trials
    return Count(min(num_alone + folds, MOST_COUNTED), min(runs, MOST_COUNTED), runs <= MOST_COUNTED)


def _first(column: ColumnElement[Any] | InstrumentedAttribute[Any], *where: ColumnElement[bool]) -> Subquery:
    """As many of the runs as are counted, and one more."""
    return select(column).select_from(Run).where(*where).limit(MOST_COUNTED + 1).subquery()
