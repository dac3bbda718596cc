"""/api/v1/runs: create, list, read, change, delete."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from noisescale_core.advice.parts import DecisionWord
from noisescale_server.api import cursor as cursors
from noisescale_server.api.answers import page_answer, run_answer, status_answer
from noisescale_server.api.auth_route import enter_if_there, enter_project, note_author, sees_only_status, sessions_of
from noisescale_server.api.body import parse, read_body
from noisescale_server.api.deps import (
    RUN_DELETED,
    UUIDS,
    AppSettings,
    Now,
    Number,
    ReadSession,
    RunId,
    Session,
    Text,
    body_of,
    check_range,
)
from noisescale_server.api.schemas_runs import (
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
from noisescale_server.api.transactions import commit_with_retry
from noisescale_server.services import calibration, runs
from noisescale_server.services.errors import refuse
from noisescale_server.services.runs import Patience, Status
from noisescale_server.settings import Settings
from noisescale_server.storage.run_queries import RunFilter, Sort
from noisescale_server.storage.runs import NewRun as StoredNewRun

router = APIRouter(prefix="/runs", tags=["runs"])

MAX_IDS = 200

SortName = Literal[
    "name",
    "-name",
    "created_at",
    "-created_at",
    "updated_at",
    "-updated_at",
    "last_step",
    "-last_step",
    "loss",
    "-loss",
    "noise_scale",
    "-noise_scale",
    "global_batch",
    "-global_batch",
    "example_efficiency",
    "-example_efficiency",
    "misfit",
    "-misfit",
]


def refuse_number(value: object) -> object:
    """The value itself.

    Raises:
        ValueError: For a number, which could be seconds or milliseconds.
    """
    if isinstance(value, str) and value.strip().replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("is a number: give date, time and zone, as 2026-11-22T14:00:00Z")
    return value


class WhichRuns(BaseModel):
    """Which runs."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    task: Text | None = None
    status: Annotated[list[Literal[Status, "diverged"]], Field(max_length=6)] = []
    decision: Annotated[list[DecisionWord], Field(max_length=7, description="any of them")] = []
    tag: Annotated[list[Text], Field(max_length=32, description="runs that have all of them")] = []
    q: Annotated[Text | None, Field(description="part of the name")] = None
    archived: bool = False
    batch_min: Number | None = None
    batch_max: Number | None = None
    noise_scale_min: Number | None = None
    noise_scale_max: Number | None = None
    ids: Annotated[
        str | None, Field(max_length=10_000, description="UUIDs, separated by commas", json_schema_extra=UUIDS)
    ] = None
    updated_after: Annotated[
        AwareDatetime | None, BeforeValidator(refuse_number), Field(description="runs with data since then")
    ] = None


class RunQuery(WhichRuns):
    """Which runs, in which order, from where."""

    sort: SortName = "-updated_at"
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Annotated[str | None, Field(max_length=cursors.MAX_CURSOR_CHARACTERS)] = None


@router.post(
    "",
    status_code=201,
    response_model=RunAnswer | RunStatusAnswer,
    responses={200: {"model": RunAnswer | RunStatusAnswer, "description": "the run was there"}, **RUN_DELETED},
    openapi_extra=body_of(NewRun),
)
async def create_run(
    request: Request, response: Response, session: Session, settings: AppSettings, now: Now
) -> RunAnswer | RunStatusAnswer:
    """Create a run; the same id again gives the same run of that project. A write key is told its status only."""
    body = parse(NewRun, await read_body(request))
    await enter_project(request, body.project)
    await enter_if_there(request, "run", body.id)
    new = StoredNewRun(**{**body.model_dump(), "id": body.id or uuid4()})
    view, is_created = await runs.create(session, new, now=now, patience=patience(settings))
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
        now=now,
        patience=patience(settings),
    )
    return page_answer(page, sort)


class SummaryQuery(WhichRuns):
    """Which runs, and what to group them by."""

    by: Annotated[Text, Field(description="project, task, optimizer, family, device, or config. and a key")]
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@router.get("/summary")
async def summarize_runs(
    query: Annotated[SummaryQuery, Query()], session: ReadSession, settings: AppSettings, now: Now
) -> RunSummary:
    """The largest groups of runs: how many, and medians."""
    found = await runs.summary(session, run_filter(query, now, settings), query.by, limit=query.limit)
    return RunSummary(by=query.by, groups=[RunGroupAnswer(**asdict(group)) for group in found])


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
async def get_run_status(run_id: RunId, session: Session, settings: AppSettings, now: Now) -> RunStatusAnswer:
    """What a run is doing: all of it that a training job's key reads, and only of runs that it wrote to."""
    return status_answer(await runs.get(session, run_id, now=now, patience=patience(settings)))


@router.get("/{run_id}")
async def get_run(run_id: RunId, session: ReadSession, settings: AppSettings, now: Now) -> RunAnswer:
    """One run."""
    return run_answer(await runs.get(session, run_id, now=now, patience=patience(settings)))


@router.patch("/{run_id}", response_model=RunAnswer, openapi_extra=body_of(RunPatch))
async def change_run(run_id: RunId, request: Request, session: Session, settings: AppSettings, now: Now) -> RunAnswer:
    """Rename, tag, remark on, archive, or move to another task of the project."""
    changes = parse(RunPatch, await read_body(request)).model_dump(exclude_unset=True)
    return run_answer(await runs.change(session, run_id, changes, now=now, patience=patience(settings)))


@router.delete("/{run_id}", status_code=204)
async def delete_run(run_id: RunId, request: Request) -> None:
    """Delete the run with all its data."""
    await commit_with_retry(sessions_of(request), lambda session: calibration.remove_run(session, run_id))


def patience(settings: Settings) -> Patience:
    """How long a run may send nothing before it is called silent, then crashed."""
    return Patience(timedelta(seconds=settings.silent_after_seconds), timedelta(seconds=settings.crashed_after_seconds))


def run_filter(query: WhichRuns, now: datetime, settings: Settings) -> RunFilter:
    """The filter that the query asks for.

    Raises:
        InvalidInput: For a range the wrong way round, or ids that are no UUIDs.
    """
    check_range("batch_min", query.batch_min, "batch_max", query.batch_max)
    check_range("noise_scale_min", query.noise_scale_min, "noise_scale_max", query.noise_scale_max)
    wait = patience(settings)
    return RunFilter(
        silent_before=now - wait.silent_after,
        crashed_before=now - wait.crashed_after,
        project=query.project,
        task=query.task,
        statuses=query.status,
        tags=query.tag,
        text=query.q,
        archived=query.archived,
        batch_min=query.batch_min,
        batch_max=query.batch_max,
        noise_scale_min=query.noise_scale_min,
        noise_scale_max=query.noise_scale_max,
        updated_after=query.updated_after,
        decisions=query.decision,
        ids=None if query.ids is None else read_ids(query.ids),
    )


def read_ids(listed: str, most: int = MAX_IDS) -> list[UUID]:
    """The UUIDs of a comma-separated list.

    Raises:
        InvalidInput: For one that is no UUID, or more than that many.
    """
    parts = listed.split(",")
    if len(parts) > most:
        raise refuse("ids", f"has {len(parts)} ids, at most {most} are read: ask in pieces")
    found = []
    for position, part in enumerate(parts):
        try:
            found.append(UUID(part))
        except ValueError as error:
            raise refuse(f"ids[{position}]", "must be a UUID", part) from error
    return found
