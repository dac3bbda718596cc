"""/api/v1/runs: create, list, read, change, delete."""

from dataclasses import asdict
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query, Request, Response

from noisescale_server.api.access.route import enter_if_there, enter_project, note_author, sees_only_status, sessions_of
from noisescale_server.api.platform import cursor as cursors
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import (
    RUN_DELETED,
    AppSettings,
    KnownWholeRuns,
    Now,
    ReadSession,
    RunId,
    Session,
    body_of,
)
from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.api.runs.answers import page_answer, run_answer, status_answer
from noisescale_server.api.runs.schemas import (
    MAX_TAGS,
    ChangedRuns,
    NewRun,
    RunAnswer,
    RunChanges,
    RunGroupAnswer,
    RunPage,
    RunPatch,
    RunStatusAnswer,
    RunSummary,
)
from noisescale_server.api.runs.which import RunQuery, SummaryQuery, patience, run_filter
from noisescale_server.services.calibration import calibration
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.runs import runs
from noisescale_server.storage.runs.listing import Sort
from noisescale_server.storage.runs.runs import NewRun as StoredNewRun

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


@router.get("")
async def list_runs(
    query: Annotated[RunQuery, Query()], session: ReadSession, settings: AppSettings, now: Now
) -> RunPage:
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
    run_id: RunId, session: ReadSession, whole_runs: KnownWholeRuns, settings: AppSettings, now: Now
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
