"""/api/v1/runs/{run_id}/comments: what people say about a run."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform import cursor as cursors
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import CONTROL_CHARACTERS, Now, ReadSession, RunId, Session, body_of
from noisescale_server.api.platform.schemas import Answer, Body, refuse_blank, refuse_unprintable
from noisescale_server.services import comments
from noisescale_server.services.access.access import Principal
from noisescale_server.storage.comments import RunComment
from noisescale_server.storage.runs.listing import Sort

router = APIRouter(prefix="/runs/{run_id}/comments", tags=["runs"])

CommentId = Annotated[UUID, Path(description="UUID of the comment")]
MAX_TEXT = 4_000
NEWEST_FIRST = Sort("created_at", is_descending=True)

_LINE = rf"([^{CONTROL_CHARACTERS}]|\n|\t)"
LINES_NOT_BLANK = {"pattern": rf"^{_LINE}*[^{CONTROL_CHARACTERS}\s]{_LINE}*$"}
"""What OpenAPI says of texts that `refuse_unprintable` and `refuse_blank` read."""


class CommentBody(Body):
    """Body of POST and PATCH."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_TEXT,
            json_schema_extra=LINES_NOT_BLANK,
            description="what is said; an @ and the name of somebody of the project mentions them",
        ),
        AfterValidator(refuse_unprintable),
        AfterValidator(refuse_blank),
    ]


class CommentsQuery(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=comments.MAX_COMMENTS)] = 100
    cursor: Annotated[
        str | None, Field(max_length=cursors.MAX_CURSOR_CHARACTERS, description="`next_cursor` of the page before")
    ] = None


class CommentAnswer(Answer):
    """What somebody has said; `is_own`: by who asks, who may then change it."""

    id: UUID
    author: str
    text: str
    mentions: list[str]
    created_at: datetime
    edited_at: datetime | None
    is_own: bool


class CommentPage(Answer):
    """Comments, newest first, how many the run has, and names that a comment of who asks may mention."""

    comments: list[CommentAnswer]
    total: int
    next_cursor: str | None
    mentionable: list[str]


@router.get("")
async def list_comments(
    run_id: RunId, query: Annotated[CommentsQuery, Query()], session: ReadSession, by: Asking
) -> CommentPage:
    """What was said about the run; `mentionable` is empty for who may not write."""
    after = None if query.cursor is None else cursors.decode(query.cursor, NEWEST_FIRST)
    place = None if after is None else (after.value, after.run_id)
    found = await comments.of_run(session, by, run_id, limit=query.limit, after=place)
    last = found.comments[-1] if found.has_more else None
    return CommentPage(
        comments=[_answer(one, by) for one in found.comments],
        total=found.total,
        next_cursor=None if last is None else cursors.encode(NEWEST_FIRST, last.created_at, last.id),
        mentionable=list(found.mentionable),
    )


@router.post("", status_code=201, response_model=CommentAnswer, openapi_extra=body_of(CommentBody))
async def add_comment(run_id: RunId, request: Request, session: Session, by: Asking, now: Now) -> CommentAnswer:
    """Say something about the run."""
    wanted = parse(CommentBody, await read_body(request))
    return _answer(await comments.add(session, by, run_id, wanted.text, now), by)


@router.patch("/{comment_id}", response_model=CommentAnswer, openapi_extra=body_of(CommentBody))
async def edit_comment(
    run_id: RunId, comment_id: CommentId, request: Request, session: Session, by: Asking, now: Now
) -> CommentAnswer:
    """Put what one has said in other words: only its author may."""
    wanted = parse(CommentBody, await read_body(request))
    return _answer(await comments.edit(session, by, run_id, comment_id, wanted.text, now), by)


@router.delete("/{comment_id}", status_code=204)
async def delete_comment(run_id: RunId, comment_id: CommentId, session: Session, by: Asking) -> None:
    """Take a comment away: its author may, and admins of the project."""
    await comments.delete(session, by, run_id, comment_id)


def _answer(one: RunComment, by: Principal) -> CommentAnswer:
    return CommentAnswer(
        id=one.id,
        author=one.author,
        text=one.text,
        mentions=one.mentions,
        created_at=one.created_at,
        edited_at=one.edited_at,
        is_own=one.author_id == comments.author_id(by),
    )
