"""/api/v1/sweeps: create, list, read, rename, attach runs, delete."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from noisescale_server.analysis.sweeps.large_batch_quality import Quality
from noisescale_server.analysis.sweeps.plan import SweepPlan
from noisescale_server.api.access.route import enter_if_there, enter_project, principal_of
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.schemas import (
    BetweenRuns,
    NewSweepBody,
    SweepAnswer,
    SweepList,
    SweepPatch,
    SweepRunAnswer,
    SweepRunBody,
    SweepRunsBody,
    SweepWithRuns,
    Value,
    WrittenSweep,
    followed_answer,
)
from noisescale_server.services.calibration import calibration
from noisescale_server.services.sweeps import critical_batch, large_batch_quality, sweeps
from noisescale_server.services.sweeps.sweeps import BETWEEN_RUNS, GivenRun, Goal, Kind, SweepView
from noisescale_server.storage.platform.tables import Calibration, Sweep, SweepRun
from noisescale_server.storage.sweeps import NewSweep, SweepFilter, SweepRow, called

router = APIRouter(prefix="/sweeps", tags=["sweeps"])

SweepId = Annotated[UUID, Path(description="UUID of the sweep")]


class SweepQuery(BaseModel):
    """Which sweeps, from where."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    task: Text | None = None
    kind: Kind | None = None
    run_id: Annotated[UUID | None, Field(description="the run that branches left")] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: UUID | None = None


@router.post(
    "",
    status_code=201,
    response_model=SweepAnswer | WrittenSweep,
    responses={200: {"model": SweepAnswer | WrittenSweep, "description": "the sweep was there"}},
    openapi_extra=body_of(NewSweepBody),
)
async def create_sweep(request: Request, response: Response, session: Session) -> SweepAnswer | WrittenSweep:
    """Create a sweep; the same id again gives the same sweep of that project, with a new noise scale between runs."""
    body = parse(NewSweepBody, await read_body(request))
    await enter_project(request, body.project)
    await enter_if_there(request, "sweep", body.id)
    row, is_created = await sweeps.create(session, NewSweep(**body.columns(), id=body.id or uuid4()))
    response.status_code = 201 if is_created else 200
    return _written(row) if principal_of(request).reads_only_its_own else SweepAnswer(**_fields(row))


@router.get("")
async def list_sweeps(query: Annotated[SweepQuery, Query()], session: ReadSession) -> SweepList:
    """Sweeps in pages, newest first."""
    wanted = SweepFilter(project=query.project, task=query.task, kind=query.kind, run_id=query.run_id)
    page = await sweeps.list_page(session, wanted, limit=query.limit, after=query.cursor)
    return SweepList(
        sweeps=[SweepAnswer(**_fields(row)) for row in page.rows],
        next_cursor=str(page.rows[-1].sweep.id) if page.has_more else None,
        total=page.total,
    )


@router.get("/{sweep_id}")
async def get_sweep(sweep_id: SweepId, session: ReadSession) -> SweepWithRuns:
    """One sweep with its runs, and those that are held against it."""
    view = await sweeps.get(session, sweep_id)
    return sweep_answer(view, await calibration.held_against(session, sweep_id))


@router.patch("/{sweep_id}", response_model=SweepAnswer, openapi_extra=body_of(SweepPatch))
async def rename_sweep(sweep_id: SweepId, request: Request, session: Session) -> SweepAnswer:
    """Rename the sweep."""
    body = parse(SweepPatch, await read_body(request))
    return SweepAnswer(**_fields(await sweeps.rename(session, sweep_id, body.name)))


@router.delete("/{sweep_id}", status_code=204)
async def delete_sweep(sweep_id: SweepId, session: Session) -> None:
    """Delete the sweep with the curves that were given; runs that are stored stay."""
    await calibration.remove_sweep(session, sweep_id)


@router.post("/{sweep_id}/runs", response_model=SweepWithRuns | WrittenSweep, openapi_extra=body_of(SweepRunsBody))
async def attach_runs(sweep_id: SweepId, request: Request, session: Session) -> SweepWithRuns | WrittenSweep:
    """Attach runs that are stored, or curves; a run that the sweep has already is replaced."""
    body = parse(SweepRunsBody, await read_body(request))
    view = await calibration.attach(session, sweep_id, [given_run(run) for run in body.runs])
    if principal_of(request).reads_only_its_own:
        return _written(view.row)
    return sweep_answer(view, await calibration.held_against(session, sweep_id))


def given_run(body: SweepRunBody) -> GivenRun:
    """The run of the body; a curve without an id gets one."""
    return GivenRun(
        run_id=body.run_id or body.id or uuid4(),
        is_stored=body.run_id is not None,
        batch_size=body.batch_size,
        lr=body.lr,
        seed=body.seed,
        status=body.status,
        steps=body.steps,
        values=body.values,
    )


def sweep_answer(view: SweepView, held: Sequence[tuple[Calibration, Sweep]] = ()) -> SweepWithRuns:
    """A sweep as JSON.

    Args:
        view: The sweep.
        held: Runs that are held against it.
    """
    runs, followed = [_run_answer(run) for run in view.runs], [followed_answer(*one) for one in held]
    return SweepWithRuns(**_fields(view.row), runs=runs, followed=followed)


def _written(row: SweepRow) -> WrittenSweep:
    return WrittenSweep(id=row.sweep.id, project=row.project, task=row.task)


def _fields(row: SweepRow) -> dict[str, Any]:
    columns = (
        "id", "kind", "run_id", "metric", "goal", "targets", "unit", "optimizer", "created_at",
    )  # fmt: skip
    details = dict(row.sweep.details)
    names = {
        "name": called(row.sweep, row.task),
        "project": row.project,
        "task": row.task,
        "num_runs": row.num_runs,
        BETWEEN_RUNS: _between_runs(details.pop(BETWEEN_RUNS, None)),
        "details": details,
    }
    return {name: getattr(row.sweep, name) for name in columns} | names


def _between_runs(kept: object) -> BetweenRuns | None:
    """As it was sent; None for what an older importer left in the details."""
    try:
        return None if kept is None else BetweenRuns.model_validate(kept)
    except ValidationError:
        return None


def _run_answer(run: SweepRun) -> SweepRunAnswer:
    names = ("run_id", "is_stored", "batch_size", "lr", "seed", "status")
    fields: dict[str, Any] = {name: getattr(run, name) for name in names}
    return SweepRunAnswer(**fields, steps=run.curve_steps, values=run.curve_values)


# GET /api/v1/sweeps/{sweep_id}/plan: which batch sizes and learning rates next, and what they cost.

plan_router = APIRouter(tags=["sweeps"])


class SweepPlanQuery(BaseModel):
    """For which target, and how narrow an interval."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Value | None, Field(description="default: the hardest of the sweep")] = None
    ratio: Annotated[float, Field(ge=1.05, le=100, description="wanted upper over lower end of B_crit")] = 1.5
    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of that interval")] = 0.95


class SweepPlanAnswer(Answer):
    """What to run next."""

    sweep_id: UUID
    unit: str
    level: float
    plan: SweepPlan


@plan_router.get("/sweeps/{sweep_id}/plan")
async def get_sweep_plan(
    sweep_id: SweepId, query: Annotated[SweepPlanQuery, Query()], session: ReadSession
) -> SweepPlanAnswer:
    """Runs that narrow B_crit's interval most for what they cost, or what a refused sweep needs."""
    row, found = await critical_batch.plan_of_sweep(
        session, sweep_id, target=query.target, wanted_ratio=query.ratio, level=query.level
    )
    return SweepPlanAnswer(sweep_id=sweep_id, unit=row.sweep.unit, level=query.level, plan=found)


# GET /api/v1/sweeps/{sweep_id}/quality: whether larger batches end at a worse metric.

quality_router = APIRouter(tags=["sweeps"])


class SweepQualityQuery(BaseModel):
    """How sure."""

    model_config = ConfigDict(extra="forbid")

    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the differences")] = 0.95


class SweepQualityAnswer(Answer):
    """The metric against the batch size under three budgets; empty for fewer than two batch sizes."""

    sweep_id: UUID
    metric: str | None
    goal: Goal
    level: float
    comparisons: tuple[Quality, ...]


@quality_router.get("/sweeps/{sweep_id}/quality")
async def get_sweep_quality(
    sweep_id: SweepId, query: Annotated[SweepQualityQuery, Query()], session: ReadSession
) -> SweepQualityAnswer:
    """At equal steps, at equal examples and given time: the metric of each batch size, against the smallest one's."""
    row, found = await large_batch_quality.of_sweep(session, sweep_id, level=query.level)
    return SweepQualityAnswer(
        sweep_id=row.sweep.id,
        metric=row.sweep.metric,
        goal="max" if row.sweep.goal == "max" else "min",
        level=query.level,
        comparisons=found,
    )
