"""Life cycle of a sweep: created once, runs attached, listed, removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import RunNotFound, SweepIdTaken, SweepNotFound, refuse
from noisescale_server.services.sweeps import steady_batch
from noisescale_server.storage import sweeps
from noisescale_server.storage.calibration import IMPORTED
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.tables import Run, SweepRun
from noisescale_server.storage.sweeps import NewSweep, NewSweepRun, SweepFilter, SweepRow

Kind = Literal["sweep", "branch"]
AnyKind = Literal["sweep", "branch", "followed"]
"""With the one that nobody creates by hand: what one run says of κ that is held against a sweep."""

Goal = Literal["min", "max"]
Status = Literal["complete", "infeasible", "incomplete"]

BETWEEN_RUNS = "noise_scale_between_runs"
"""Where the details of a sweep keep it."""

CHANGED = (
    "is required: the batch of this run changed while it trained, and this is only its newest. Give the batch size "
    "that its steps shall count for, or attach runs that trained at one batch"
)

MAX_RUNS = 10_000
"""Runs of one sweep: grids of published studies have some thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRun:
    """A run to attach: one that is stored, by its id, or a curve.

    Attributes:
        run_id: Of the run; of a curve its name for repeated requests.
        is_stored: Whether the run's own metric is read.
        batch_size: In examples; None: as the run has logged it, where it trained at one batch.
        lr: Learning rate; None: as the run has logged it last.
        seed: Which repeat it is, or None.
        status: Complete; infeasible since it diverged; incomplete, then what is missing may change the result.
        steps: Of the curve's evaluations, rising.
        values: Of the metric there.
    """

    run_id: UUID
    is_stored: bool
    batch_size: float | None
    lr: float | None
    seed: int | None
    status: Status
    steps: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class SweepView:
    """A sweep with its runs, by batch size, learning rate and seed."""

    row: SweepRow
    runs: Sequence[SweepRun]


@dataclass(frozen=True, slots=True)
class SweepPage:
    """Sweeps, newest first, how many there are in all, and whether more follow."""

    rows: list[SweepRow]
    total: int
    has_more: bool


async def create(session: AsyncSession, new: NewSweep) -> tuple[SweepRow, bool]:
    """The sweep and True if it was created, False if the project already had it.

    Of a sweep that was there a noise scale between runs is replaced, as its runs may have grown.

    Raises:
        SweepIdTaken: When another project has a sweep of this id, or it is of another kind.
        RunNotFound: When the run that branches left is not the project's.
    """
    await placement.one_connection_a_node(session)
    if new.run_id is not None and not await sweeps.stored_runs(session, new.project, [new.run_id]):
        raise RunNotFound(new.run_id)
    is_created = await sweeps.create_if_absent(session, new)
    row = await sweeps.get_row(session, new.id)
    if row is None or row.project != new.project or row.sweep.kind != new.kind:
        raise SweepIdTaken(new.id)
    if not is_created and BETWEEN_RUNS in new.details and IMPORTED not in row.sweep.details:
        row.sweep.details = {**row.sweep.details, BETWEEN_RUNS: new.details[BETWEEN_RUNS]}
    return row, is_created


async def get(session: AsyncSession, sweep_id: UUID) -> SweepView:
    """The sweep and its runs.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    found = await row(session, sweep_id)
    return SweepView(found, await sweeps.runs_of(session, sweep_id))


async def row(session: AsyncSession, sweep_id: UUID) -> SweepRow:
    """The sweep without its runs, whose curves take their time to read.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    found = await sweeps.get_row(session, sweep_id)
    if found is None:
        raise SweepNotFound(sweep_id)
    return found


async def list_page(session: AsyncSession, wanted: SweepFilter, *, limit: int, after: UUID | None) -> SweepPage:
    """A page of sweeps."""
    rows = await sweeps.list_page(session, wanted, limit=limit + 1, after=after)
    return SweepPage(rows[:limit], await sweeps.count(session, wanted), has_more=len(rows) > limit)


async def rename(session: AsyncSession, sweep_id: UUID, name: str) -> SweepRow:
    """The sweep under its new name.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    if not await sweeps.rename(session, sweep_id, name):
        raise SweepNotFound(sweep_id)
    return await row(session, sweep_id)


async def remove(session: AsyncSession, sweep_id: UUID) -> None:
    """Delete a sweep and the curves given with it; stored runs stay.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    if not await sweeps.remove(session, sweep_id):
        raise SweepNotFound(sweep_id)


async def attach(session: AsyncSession, sweep_id: UUID, given: Sequence[GivenRun]) -> SweepView:
    """The sweep with these runs added; a run that it has already is replaced.

    Raises:
        SweepNotFound: When no sweep has this id.
        RunNotFound: For a stored run that the sweep's project does not have.
        InvalidInput: Where a batch size or learning rate is neither given nor logged, where the batch of a run without
            one changed, or there are too many runs.
    """
    # held first: a sweep that is deleted meanwhile would be a broken foreign key
    row = await sweeps.get_row(session, sweep_id) if await sweeps.hold(session, sweep_id) else None
    if row is None:
        raise SweepNotFound(sweep_id)
    if IMPORTED in row.sweep.details:
        raise refuse("sweep_id", "was measured by another server and imported: begin a sweep of its own", str(sweep_id))
    if row.sweep.kind not in get_args(Kind):
        raise refuse("sweep_id", "is what one run says of κ, and no sweep: begin a sweep", str(sweep_id))
    ids = [run.run_id for run in given if run.is_stored]
    stored = {run.id: run for run in await sweeps.stored_runs(session, row.project, ids)}
    batches = await _own_batches(session, given, stored)
    new = [_complete(run, place, stored, batches) for place, run in enumerate(given)]
    await sweeps.attach(session, sweep_id, new)
    attached = await sweeps.runs_of(session, sweep_id)
    # counted afterwards: those that were there are replaced, and a source may be imported again
    if len(attached) > MAX_RUNS:
        raise refuse("runs", f"would be more than {MAX_RUNS} in one sweep: begin another", len(given))
    return SweepView(replace(row, num_runs=len(attached)), attached)


async def _own_batches(
    session: AsyncSession, given: Sequence[GivenRun], stored: Mapping[UUID, Run]
) -> dict[UUID, float | None]:
    """Of stored runs that come without a batch size the one that they trained at, None where it changed."""
    asked = [stored[one.run_id] for one in given if one.batch_size is None and one.run_id in stored]
    newest = {run.id: run.latest_global_batch for run in asked if run.latest_global_batch}
    return await steady_batch.of_runs(session, newest)


def _complete(
    given: GivenRun, place: int, stored: Mapping[UUID, Run], batches: Mapping[UUID, float | None]
) -> NewSweepRun:
    run = stored.get(given.run_id)
    if given.is_stored and run is None:
        raise RunNotFound(given.run_id)
    batch_size, lr = given.batch_size, given.lr
    if run is not None:
        if batch_size is None and batches.get(run.id, 0.0) is None:
            raise refuse(f"runs[{place}].batch_size", CHANGED, run.latest_global_batch)
        batch_size, lr = batch_size or batches.get(run.id), lr or run.latest_lr
    for name, value in (("batch_size", batch_size), ("lr", lr)):
        if value is None or value <= 0:
            raise refuse(f"runs[{place}].{name}", "is required: the run has logged none", value)
    assert batch_size is not None
    assert lr is not None
    return NewSweepRun(
        run_id=given.run_id,
        is_stored=given.is_stored,
        batch_size=batch_size,
        lr=lr,
        seed=given.seed,
        status=given.status,
        curve_steps=given.steps,
        curve_values=given.values,
    )
