"""Trials of one sweep or reproduction as a single row of a list of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Label, Select, Subquery, Text, case, cast, func, literal, null, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.tables import Run, Sweep, SweepRun
from noisescale_server.storage.runs import filters
from noisescale_server.storage.runs.filters import RunFilter

SWEEP, REPRODUCTION = "sweep ", "reproduction "
"""What the key of a fold begins with; the id of the sweep or of the task follows."""
ADVISED = ("misfit", "saving")
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
class FoldKey:
    """What the query says of a fold."""

    key: str
    num_runs: int
    batch_low: float | None
    batch_high: float | None
    loss: float | None


def folded(wanted: RunFilter, sorted_by: Label[Any], *, is_descending: bool) -> Subquery:
    """Ids of runs that are no trials, and of the first trial of each fold; with what the fold holds.

    Columns `id`, `sorted_by`, `total` (rows in all), `num_all` (runs in all) and those of `FoldKey`.
    """
    first_sweep = (
        select(SweepRun.run_id, SweepRun.sweep_id)
        .ext(distinct_on(SweepRun.run_id))
        .where(SweepRun.is_stored)
        .order_by(SweepRun.run_id, SweepRun.created_at, SweepRun.sweep_id)
        .subquery()
    )
    key = case(
        (first_sweep.c.sweep_id.is_not(None), literal(SWEEP) + cast(first_sweep.c.sweep_id, Text)),
        (filters.is_reproduced(), literal(REPRODUCTION) + cast(Run.task_id, Text)),
        else_=cast(Run.id, Text),
    ).label("key")
    matching = (
        select(Run.id, sorted_by, key, Run.latest_global_batch.label("batch"), Run.latest_loss.label("loss"))
        .outerjoin(first_sweep, first_sweep.c.run_id == Run.id)
        .where(*filters.conditions(wanted))
        .subquery()
    )
    order = matching.c.sorted_by.desc() if is_descending else matching.c.sorted_by.asc()
    placed = _placed(matching, order.nulls_last()).subquery()
    first = select(placed, func.count().over().label("total")).where(placed.c.place == 1)
    return first.subquery()


def _placed(matching: Subquery, order: Any) -> Select[Any]:
    fold = matching.c.key
    return select(
        matching.c.id,
        matching.c.sorted_by,
        matching.c.key,
        func.row_number().over(partition_by=fold, order_by=(order, matching.c.id)).label("place"),
        func.count().over(partition_by=fold).label("num_runs"),
        func.min(matching.c.batch).over(partition_by=fold).label("batch_low"),
        func.max(matching.c.batch).over(partition_by=fold).label("batch_high"),
        func.min(matching.c.loss).over(partition_by=fold).label("loss"),
        func.count().over().label("num_all"),
    )


def sortable(column: str, element: Any) -> Label[Any]:
    """What a folded list is sorted by: trials come last where it goes by advice."""
    of_runs = case((filters.is_trial(), null()), else_=element) if column in ADVISED else element
    return of_runs.label("sorted_by")


async def named(session: AsyncSession, keys: Sequence[FoldKey], tasks: Sequence[str]) -> list[Fold | None]:
    """The folds of rows in order, None of a run that is no trial.

    Args:
        session: Where names of sweeps are read.
        keys: One a row.
        tasks: The name of each row's task.
    """
    wanted = [UUID(one.key.removeprefix(SWEEP)) for one in keys if one.key.startswith(SWEEP)]
    rows = select(Sweep.id, Sweep.kind, Sweep.name).where(Sweep.id.in_(wanted))
    sweeps = {row.id: row for row in await session.execute(rows)} if wanted else {}
    return [_fold(one, task, sweeps) for one, task in zip(keys, tasks, strict=True)]


def _fold(one: FoldKey, task: str, sweeps: dict[UUID, Any]) -> Fold | None:
    held = (one.num_runs, one.batch_low, one.batch_high, one.loss)
    if one.key.startswith(REPRODUCTION):
        return Fold("reproduction", None, task, *held)
    if not one.key.startswith(SWEEP):
        return None
    sweep_id = UUID(one.key.removeprefix(SWEEP))
    found = sweeps.get(sweep_id)
    # a sweep that is deleted meanwhile leaves its trials behind
    return Fold("sweep", sweep_id, task, *held) if found is None else Fold(found.kind, sweep_id, found.name, *held)
