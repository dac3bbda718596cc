"""Life cycle of a run: created once, listed, changed, removed; its status follows from the clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.effects import share_interval
from noisescale_core.advice.parts.flags import notices
from noisescale_core.advice.parts.parts import Caution, Decision, DecisionWord, Interval, RunSoFar
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory.trade_off import example_efficiency, step_efficiency
from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.services.ingest import stale_windows
from noisescale_server.services.platform.errors import RunDeleted, RunIdTaken, RunNotFound, refuse
from noisescale_server.services.recommendation import decisions, known_kappa
from noisescale_server.services.series.so_far import run_so_far
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import baselines, calibration
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import queries as run_queries
from noisescale_server.storage.runs import runs
from noisescale_server.storage.runs.filters import CONFIG, RunFilter
from noisescale_server.storage.runs.listing import After, Count, Sort
from noisescale_server.storage.runs.queries import STATUS, RunGroups, RunRow
from noisescale_server.storage.runs.runs import NewRun

Status = Literal["running", "finished", "failed", "silent", "crashed"]

NOT_JUDGED_YET = "Not judged yet: the server looks at its runs in turn, those in use first."


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run may send nothing."""

    silent_after: timedelta
    crashed_after: timedelta


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a run is shown by: where nothing of it has changed, neither has what people see.

    Attributes:
        row: What is stored.
        status: Derived from the clock when nothing has come for a while.
        kappa: What its project knows of κ, by which it is decided.
        is_baseline: Others of its project are compared to it.
    """

    row: RunRow
    status: Status
    kappa: Kappa
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as people see it, at one moment of the server's clock.

    Attributes:
        row: What is stored.
        status: Derived from the clock when nothing has come for a while.
        noise_scale: Estimate over the latest window.
        reason: Why it has no value, in more detail than the estimate knows.
        example_efficiency: φ / (B + φ) with its interval; None while unresolved or without a batch size.
        step_efficiency: B / (B + φ) likewise.
        decision: What to do with the batch size, for a reader who says no price.
        kappa: What its project knows of κ, by which it is decided.
        notices: What to know of the latest window's measurement.
        divergence: Since when its loss or gradients are not finite; None where they are.
        is_baseline: Others of its project are compared to it.
    """

    row: RunRow
    status: Status
    noise_scale: NoiseScaleEstimate
    reason: str | None
    example_efficiency: Interval | None
    step_efficiency: Interval | None
    decision: Decision
    kappa: Kappa
    notices: tuple[Caution, ...]
    divergence: Divergence | None
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Runs in order, how many there are in all, and whether more follow."""

    runs: list[Seen]
    count: Count
    has_more: bool


async def create(
    session: AsyncSession, whole_runs: WholeRuns, new: NewRun, *, now: datetime, patience: Patience
) -> tuple[RunView, bool]:
    """The run and True if it was created, False if the project already had it.

    Raises:
        RunIdTaken: When another project has a run of this id.
        RunDeleted: When a run of this id was deleted.
    """
    is_created = await runs.create_if_absent(session, new)
    if await runs.is_deleted(session, new.id):
        raise RunDeleted(new.id)
    row = await run_queries.get_row(session, new.id)
    if row is None or row.project != new.project:
        raise RunIdTaken(new.id)
    return await _seen(session, whole_runs, row, now=now, patience=patience), is_created


async def get(
    session: AsyncSession, whole_runs: WholeRuns, run_id: UUID, *, now: datetime, patience: Patience
) -> RunView:
    """The run.

    Raises:
        RunNotFound: When no run has this id.
    """
    row = await run_queries.get_row(session, run_id)
    if row is None:
        raise RunNotFound(run_id)
    return await _seen(session, whole_runs, row, now=now, patience=patience)


async def list_page(
    session: AsyncSession,
    wanted: RunFilter,
    sort: Sort,
    *,
    limit: int,
    after: After | None,
    is_folded: bool,
    now: datetime,
    patience: Patience,
) -> Page:
    """A page of runs in order; folded: the trials of each sweep as one row.

    Raises:
        InvalidInput: For a pattern that is no regular expression.
    """
    if wanted.pattern:
        await _check_pattern(session, wanted.pattern)
    # One row more than asked for tells whether another page follows.
    found = await run_queries.list_page(session, wanted, sort, limit=limit + 1, after=after, is_folded=is_folded)
    shown = found.rows[:limit]
    kappas = await known_kappa.of_runs(session, [row.run for row in shown])
    pinned = await baselines.of_projects(session, {row.run.project_id for row in shown})
    seen = [
        Seen(row, status_of(row.run, now=now, patience=patience), kappa, row.run.id in pinned)
        for row, kappa in zip(shown, kappas, strict=True)
    ]
    return Page(seen, found.count, has_more=len(found.rows) > limit)


async def _check_pattern(session: AsyncSession, pattern: str) -> None:
    if not await run_queries.is_pattern(session, pattern):
        raise refuse("pattern", "is no regular expression: close its brackets, or search with q", pattern)


async def change(
    session: AsyncSession,
    whole_runs: WholeRuns,
    run_id: UUID,
    changes: dict[str, Any],
    *,
    now: datetime,
    patience: Patience,
) -> RunView:
    """The run after the changes of `name`, `tags`, `remarks`, `archived` and `task`.

    Raises:
        RunNotFound: When no run has this id.
    """
    row = await run_queries.get_row(session, run_id, is_locked=True)
    if row is None:
        raise RunNotFound(run_id)
    values = {name: value for name, value in changes.items() if name != "task"}
    if "task" in changes:
        run = row.run
        values["task_id"] = await run_queries.task_id(
            session, run.project_id, changes["task"], unit=run.unit, family=run.family
        )
        values["decision_is_stale"] = True  # what is known of κ is another task's
        await calibration.forget_run(session, run_id)  # and so is what the run says of it
    if values:
        await run_queries.change(session, run_id, values)
    await session.refresh(row.run)
    return await get(session, whole_runs, run_id, now=now, patience=patience)


async def summary(session: AsyncSession, wanted: RunFilter, by: str, *, limit: int) -> RunGroups:
    """The largest groups of runs that agree in `by`.

    Raises:
        InvalidInput: Where `by` is neither a known name nor "config." with a key, or a pattern no regular expression.
    """
    is_key = by.startswith(CONFIG) and by != CONFIG
    if not is_key and by not in (*run_queries.GROUPS, STATUS):
        known = ", ".join((*run_queries.GROUPS, STATUS))
        raise refuse("by", f"must be one of {known} or config. and a key of the config", by)
    if wanted.pattern:
        await _check_pattern(session, wanted.pattern)
    return await run_queries.summary(session, wanted, by, limit=limit)


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do with many runs at once; None or empty leaves as it is.

    Attributes:
        archived: Put away or back.
        added_tags: Tags that each of them then has.
        removed_tags: Tags that none of them then has.
        max_tags: That a run may have.
    """

    archived: bool | None
    added_tags: tuple[str, ...]
    removed_tags: tuple[str, ...]
    max_tags: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Which runs were changed, which are not there, and which would get too many tags."""

    changed: tuple[UUID, ...]
    missing: tuple[UUID, ...]
    left: tuple[UUID, ...]


async def change_many(session: AsyncSession, run_ids: Sequence[UUID], changes: Changes) -> Changed:
    """What became of each run."""
    found, left = await run_queries.change_many(
        session,
        run_ids,
        archived=changes.archived,
        added_tags=changes.added_tags,
        removed_tags=changes.removed_tags,
        max_tags=changes.max_tags,
    )
    return Changed(
        changed=tuple(run_id for run_id in found if run_id not in left),
        missing=tuple(run_id for run_id in run_ids if run_id not in found),
        left=tuple(left),
    )


async def remove(session: AsyncSession, run_id: UUID) -> None:
    """Delete a run and all its data, when the transaction commits.

    Raises:
        RunNotFound: When no run has this id.
    """
    if not await run_queries.remove(session, run_id):
        raise RunNotFound(run_id)


async def _seen(
    session: AsyncSession, whole_runs: WholeRuns, row: RunRow, *, now: datetime, patience: Patience
) -> RunView:
    """One run as people see it now, with all its rows."""
    await stale_windows.show_all_rows(session, row.run)
    await decisions.show_newest(session, whole_runs, row.run)
    is_baseline = row.run.id in await baselines.of_projects(session, [row.run.project_id])
    kappa = await known_kappa.of_run(session, row.run)
    return view(Seen(row, status_of(row.run, now=now, patience=patience), kappa, is_baseline))


def view(seen: Seen) -> RunView:
    """The run as people see it, which follows from this alone."""
    row = seen.row
    so_far = run_so_far(row.run)
    batch, scale = so_far.batch_size, so_far.noise_scale
    return RunView(
        row=row,
        status=seen.status,
        noise_scale=scale,
        reason=so_far.reason,
        example_efficiency=None if batch is None else share_interval(example_efficiency, scale, batch),
        step_efficiency=None if batch is None else share_interval(step_efficiency, scale, batch),
        decision=_decision(row.run, so_far),
        kappa=seen.kappa,
        notices=notices(so_far.flags),
        divergence=so_far.divergence,
        is_baseline=seen.is_baseline,
    )


def _decision(run: Run, so_far: RunSoFar) -> Decision:
    """As it is kept, but for what needs no measurement to be seen."""
    if so_far.divergence is not None:
        return decide(so_far)
    if run.decision not in get_args(DecisionWord):
        return Decision("insufficient_evidence", None, None, None, NOT_JUDGED_YET)
    return Decision(
        decision=run.decision,  # type: ignore[arg-type]  # checked above
        batch_size=run.decision_batch_size,
        low=run.decision_low,
        high=run.decision_high,
        reason=run.decision_reason or "",
        probability=run.decision_probability,
        saving=run.decision_saving,
    )


def status_of(run: Run, *, now: datetime, patience: Patience) -> Status:
    """What the run is doing; silent and crashed follow from the clock and end when data arrive."""
    if run.finish_status is not None:
        return "finished" if run.finish_status == "finished" else "failed"
    quiet = now - run.updated_at
    if quiet >= patience.crashed_after:
        return "crashed"
    return "silent" if quiet >= patience.silent_after else "running"


# Projects and what is in them.


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project, how many runs it has, archived ones included, if they were counted, and its task names in order."""

    name: str
    num_runs: int | None
    tasks: tuple[str, ...]


async def list_projects(session: AsyncSession, *, are_counted: bool) -> list[ProjectSummary]:
    """Every project, by name; counting their runs takes a tenth of a second a million."""
    found = await run_queries.projects(session, are_counted=are_counted)
    return [ProjectSummary(name, num_runs, tuple(tasks)) for name, num_runs, tasks in found]
