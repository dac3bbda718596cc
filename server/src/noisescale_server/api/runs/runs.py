"""/api/v1/runs: create, list, read, change, delete."""

from dataclasses import asdict
from functools import lru_cache
from typing import Annotated, Final
from uuid import UUID, uuid4

from cachetools import LRUCache
from fastapi import APIRouter, Query, Request, Response
from orjson import Fragment
from pydantic import BaseModel

from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.parts import parts as advice
from noisescale_core.advice.parts.parts import LatestNoiseScale
from noisescale_core.advice.words import of_divergence
from noisescale_core.estimators.divergence import Divergence
from noisescale_server.api.access.route import enter_if_there, enter_project, note_author, sees_only_status, sessions_of
from noisescale_server.api.platform import cursor
from noisescale_server.api.platform import cursor as cursors
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.columns import JsonColumns
from noisescale_server.api.platform.deps import (
    RUN_DELETED,
    AppSettings,
    KnownWholeRuns,
    Now,
    PlainReadSession,
    ReadSession,
    RunId,
    Session,
    body_of,
)
from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.api.runs.schemas import (
    MAX_TAGS,
    ChangedRuns,
    FoldAnswer,
    Interval,
    NewRun,
    Notice,
    RowDecision,
    RunAnswer,
    RunChanges,
    RunDivergence,
    RunGroupAnswer,
    RunKappa,
    RunPage,
    RunPatch,
    RunStatusAnswer,
    RunSummary,
)
from noisescale_server.api.runs.which import RunQuery, SummaryQuery, patience, run_filter
from noisescale_server.services import runs
from noisescale_server.services.calibration import calibration
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.runs import Page, RunView, Seen
from noisescale_server.storage.runs.folding import Fold
from noisescale_server.storage.runs.listing import Sort
from noisescale_server.storage.runs.runs import NewRun as StoredNewRun
from noisescale_server.storage.runs.streams import KINDS

# Runs and estimates as JSON answers; see docs/rest.md.


def run_answer(view: RunView) -> RunAnswer:
    """One run."""
    run = view.row.run
    return RunAnswer(
        id=run.id,
        project=view.row.project,
        task=view.row.task,
        name=run.name,
        tags=run.tags,
        config=run.config,
        unit=run.unit,
        example=run.example or "example",
        units_per_example=run.units_per_example,
        num_devices=run.num_devices,
        device=run.device,
        usd_per_device_hour=run.usd_per_device_hour,
        family=run.family,
        planned_steps=run.planned_steps,
        archived=run.archived,
        is_baseline=view.is_baseline,
        status=view.status,
        created_at=run.created_at,
        updated_at=run.updated_at,
        finished_at=run.finished_at,
        optimizer=run.optimizer,
        estimator=run.estimator,
        num_ranks=run.num_ranks,
        measure_every=run.measure_every,
        notes=run.notes,
        remarks=run.remarks,
        notices=[Notice(code=notice.code, text=notice.text) for notice in view.notices],
        kinds=[kind for kind in KINDS if kind in run.kinds],
        lr=run.latest_lr,
        loss_reduction=run.loss_reduction,
        first_step=run.first_step,
        last_step=run.latest_step,
        examples=run.latest_examples,
        global_batch=run.latest_global_batch,
        num_micro_batches=run.latest_num_micro_batches,
        loss=None if view.divergence is not None and view.divergence.loss else run.latest_loss,
        noise_scale=LatestNoiseScale.of(view.noise_scale, view.reason, run.noise_scale_step),
        divergence=divergence_answer(view.divergence, run.noise_scale_step),
        example_efficiency=interval_answer(view.example_efficiency),
        step_efficiency=interval_answer(view.step_efficiency),
        decision=decision_answer(view.decision),
        kappa=kappa_answer(view.kappa, view.noise_scale.level),
    )


def divergence_answer(found: Divergence | None, until_step: int | None) -> RunDivergence | None:
    """Since when a run is not finite, in words too."""
    if found is None:
        return None
    text = of_divergence.sentence(found, until_step=until_step)
    return RunDivergence(step=found.step, loss=found.loss, gradients=found.gradients, text=text)


def status_answer(view: RunView) -> RunStatusAnswer:
    """A run's status alone."""
    return RunStatusAnswer(id=view.row.run.id, project=view.row.project, status=view.status)


MOST_KEPT_BYTES: Final = 4 << 20
"""Of runs as JSON: a thousand or two."""

_kept: LRUCache[UUID, tuple[Seen, bytes]] = LRUCache(MOST_KEPT_BYTES, getsizeof=lambda kept: len(kept[1]))


def run_as_json(seen: Seen) -> bytes:
    """A run of a list: written anew where something of it has changed since it was listed last."""
    run_id = seen.row.run.id
    kept = _kept.get(run_id)
    if kept is not None and kept[0] == seen:
        return kept[1]
    text = run_answer(runs.view(seen)).model_dump_json(by_alias=True).encode()
    if len(text) <= MOST_KEPT_BYTES:
        _kept[run_id] = seen, text
    return text


def page_answer(page: Page, sort: Sort) -> JsonColumns:
    """A page of runs with the cursor of the next, as a `RunPage`."""
    rows = [seen.row for seen in page.runs]
    folds = [fold_answer(row.run.id, row.fold) for row in rows if row.fold is not None]
    return JsonColumns(
        {
            "runs": [Fragment(run_as_json(seen)) for seen in page.runs],
            "folds": [fold.model_dump(mode="json") for fold in folds],
            "next_cursor": cursor.encode(sort, rows[-1].sorted_by, rows[-1].run.id) if page.has_more else None,
            "total": page.count.rows,
            "num_runs": page.count.runs,
            "is_total_exact": page.count.is_exact,
        }
    )


def fold_answer(run_id: UUID, fold: Fold) -> FoldAnswer:
    """The trials behind a run."""
    return FoldAnswer(run_id=run_id, **asdict(fold))


def interval_answer(interval: advice.Interval | None) -> Interval | None:
    """A value with its interval, or null."""
    return None if interval is None else Interval(value=interval.value, low=interval.low, high=interval.high)


def decision_answer(decision: advice.Decision) -> RowDecision:
    """The decision of a table row."""
    return RowDecision(
        decision=decision.decision,
        batch_size=decision.batch_size,
        low=decision.low,
        high=decision.high,
        reason=decision.reason,
        probability=decision.probability,
        saving=decision.saving,
    )


@lru_cache(maxsize=256)
def kappa_answer(kappa: Kappa, level: float) -> RunKappa:
    """What is known of κ, with its interval; the runs of a page share most of them."""
    low, high = kappa.interval(level)
    return RunKappa(value=kappa.value, low=low, high=high, level=level, measurements=kappa.measurements)


router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "",
    status_code=201,
    response_model=RunAnswer | RunStatusAnswer,
    responses={200: {"model": RunAnswer | RunStatusAnswer, "description": "the run was there"}, **RUN_DELETED},
    openapi_extra=body_of(NewRun),
)
async def create_run(
    request: Request,
    response: Response,
    session: Session,
    whole_runs: KnownWholeRuns,
    settings: AppSettings,
    now: Now,
) -> RunAnswer | RunStatusAnswer:
    """Create a run; the same id again gives the same run of that project. A write key is told its status only."""
    body = parse(NewRun, await read_body(request))
    await enter_project(request, body.project)
    await enter_if_there(request, "run", body.id)
    new = StoredNewRun(**{**body.model_dump(), "id": body.id or uuid4()})
    view, is_created = await runs.create(session, whole_runs, new, now=now, patience=patience(settings))
    response.status_code = 201 if is_created else 200
    if is_created:
        await note_author(request, session, new.id)
    return status_answer(view) if await sees_only_status(request, session, new.id) else run_answer(view)


@router.get("", response_class=JsonColumns, responses={200: {"model": RunPage}})
async def list_runs(
    query: Annotated[RunQuery, Query()], session: ReadSession, settings: AppSettings, now: Now
) -> JsonColumns:
    """Runs in pages, each with its latest noise scale, efficiencies and decision."""
    sort = Sort(query.sort.removeprefix("-"), is_descending=query.sort.startswith("-"))
    page = await runs.list_page(
        session,
        run_filter(query, now, settings),
        sort,
        limit=query.limit,
        after=None if query.cursor is None else cursors.decode(query.cursor, sort),
        is_folded=query.fold,
        now=now,
        patience=patience(settings),
    )
    return page_answer(page, sort)


@router.get("/summary")
async def summarize_runs(
    query: Annotated[SummaryQuery, Query()], session: ReadSession, settings: AppSettings, now: Now
) -> RunSummary:
    """The largest groups of runs: how many, and medians."""
    found = await runs.summary(session, run_filter(query, now, settings), query.by, limit=query.limit)
    return RunSummary(
        by=query.by, groups=[RunGroupAnswer(**asdict(group)) for group in found.groups], is_exact=found.is_exact
    )


@router.post("/changes", response_model=ChangedRuns, openapi_extra=body_of(RunChanges))
async def change_runs(request: Request, session: Session) -> ChangedRuns:
    """Tag or archive up to 200 runs at once: all in one transaction."""
    body = parse(RunChanges, await read_body(request))
    both = sorted(set(body.add_tags) & set(body.remove_tags))
    if both:
        raise refuse("remove_tags", f"has {both[0]!r}, which add_tags has too: name a tag in one of them")
    wanted = runs.Changes(body.archived, tuple(body.add_tags), tuple(body.remove_tags), MAX_TAGS)
    found = await runs.change_many(session, list(dict.fromkeys(body.ids)), wanted)
    return ChangedRuns(changed=list(found.changed), missing=list(found.missing), too_many_tags=list(found.left))


@router.get("/{run_id}/status")
async def get_run_status(
    run_id: RunId, session: Session, whole_runs: KnownWholeRuns, settings: AppSettings, now: Now
) -> RunStatusAnswer:
    """What a run is doing: all of it that a training job's key reads, and only of runs that it wrote to."""
    return status_answer(await runs.get(session, whole_runs, run_id, now=now, patience=patience(settings)))


@router.get("/{run_id}")
async def get_run(
    run_id: RunId, session: PlainReadSession, whole_runs: KnownWholeRuns, settings: AppSettings, now: Now
) -> RunAnswer:
    """One run."""
    return run_answer(await runs.get(session, whole_runs, run_id, now=now, patience=patience(settings)))


@router.patch("/{run_id}", response_model=RunAnswer, openapi_extra=body_of(RunPatch))
async def change_run(
    run_id: RunId, request: Request, session: Session, whole_runs: KnownWholeRuns, settings: AppSettings, now: Now
) -> RunAnswer:
    """Rename, tag, remark on, archive, or move to another task of the project."""
    changes = parse(RunPatch, await read_body(request)).model_dump(exclude_unset=True)
    return run_answer(await runs.change(session, whole_runs, run_id, changes, now=now, patience=patience(settings)))


@router.delete("/{run_id}", status_code=204)
async def delete_run(run_id: RunId, request: Request) -> None:
    """Delete the run with all its data."""
    await commit_with_retry(sessions_of(request), lambda session: calibration.remove_run(session, run_id))


# GET /api/v1/projects: what a reader can choose from.

projects_router = APIRouter(tags=["projects"])


class ProjectAnswer(BaseModel):
    """A project with its tasks; `num_runs` is null where it was not asked for."""

    name: str
    num_runs: int | None
    tasks: list[str]


class ProjectList(BaseModel):
    """All projects by name."""

    projects: list[ProjectAnswer]


@projects_router.get("/projects")
async def list_projects(
    session: ReadSession, counts: Annotated[bool, Query(description="false: without counting runs, at once")] = True
) -> ProjectList:
    """Every project with the number of its runs and its tasks."""
    found = await runs.list_projects(session, are_counted=counts)
    return ProjectList(
        projects=[ProjectAnswer(name=item.name, num_runs=item.num_runs, tasks=list(item.tasks)) for item in found]
    )
