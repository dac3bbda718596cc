"""Comments on a run: who may change it writes them, who reads it reads them, and nobody changes another's words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal, Right
from noisescale_server.services.alerts import mentioning
from noisescale_server.services.platform.errors import CommentNotFound, NotAllowed, RunNotFound, refuse
from noisescale_server.storage import comments as rows
from noisescale_server.storage.access import people
from noisescale_server.storage.comments import RunComment
from noisescale_server.storage.runs import queries as run_queries
from noisescale_server.storage.runs.queries import RunRow

MAX_COMMENTS: Final = 500
MAX_MENTIONABLE: Final = 500


@dataclass(frozen=True, slots=True)
class Comments:
    """A page of what was said about a run.

    Attributes:
        comments: Newest first.
        has_more: Whether older ones follow.
        total: How many the run has.
        mentionable: Names of the people who may be mentioned; none for who may not write.
    """

    comments: Sequence[RunComment]
    has_more: bool
    total: int
    mentionable: Sequence[str]


async def of_run(
    session: AsyncSession, by: Principal, run_id: UUID, *, limit: int, after: tuple[datetime, UUID] | None
) -> Comments:
    """A page of the run's comments.

    Raises:
        RunNotFound: When no run has this id.
    """
    row = await _run(session, run_id)
    found = await rows.of_run(session, run_id, limit=limit + 1, after=after)
    writes = by.may(Right.CHANGE, row.run.project_id)
    names = await people.names_of_project(session, row.run.project_id, limit=MAX_MENTIONABLE) if writes else []
    return Comments(found[:limit], len(found) > limit, await rows.count(session, run_id), names)


async def add(session: AsyncSession, by: Principal, run_id: UUID, text: str, now: datetime) -> RunComment:
    """A new comment; whom it mentions is told to the project's receivers where a rule asks for that.

    Raises:
        RunNotFound: When no run has this id.
        InvalidInput: When it has as many as it may have.
    """
    row = await _run(session, run_id)
    if await rows.count(session, run_id) >= MAX_COMMENTS:
        raise refuse("text", f"a run has at most {MAX_COMMENTS} comments: delete one first", text)
    names = await _mentioned(session, row, text)
    added = await rows.add(
        session, run_id, author=by.name, author_id=author_id(by), text=text, mentions=names, created_at=now
    )
    await audit.note(
        session, by, "comment added", project_id=row.run.project_id, run=str(run_id), comment=str(added.id)
    )
    await mentioning.tell(session, row.run, added, names, now=now)
    return added


async def edit(
    session: AsyncSession, by: Principal, run_id: UUID, comment_id: UUID, text: str, now: datetime
) -> RunComment:
    """The comment with other words; who was mentioned before is not told of again.

    Raises:
        CommentNotFound: When the run has none of this id.
        NotAllowed: To all but its author.
    """
    row, comment = await _comment(session, run_id, comment_id)
    if comment.author_id != author_id(by):
        raise NotAllowed(f"only {comment.author} may change this comment: write one of your own")
    names, before = await _mentioned(session, row, text), set(comment.mentions)
    changed = await rows.change(session, run_id, comment_id, text=text, mentions=names, edited_at=now)
    said = {"run": str(run_id), "comment": str(comment_id)}
    await audit.note(session, by, "comment changed", project_id=row.run.project_id, **said)
    await mentioning.tell(session, row.run, changed, [name for name in names if name not in before], now=now)
    return changed


async def delete(session: AsyncSession, by: Principal, run_id: UUID, comment_id: UUID) -> None:
    """Take a comment away, one's own or as an admin of the project.

    Raises:
        CommentNotFound: When the run has none of this id.
        NotAllowed: To all but its author and admins.
    """
    row, comment = await _comment(session, run_id, comment_id)
    if comment.author_id != author_id(by) and not by.may(Right.DELETE, row.run.project_id):
        raise NotAllowed(f"only {comment.author} and admins of the project may delete this comment: ask one of them")
    await rows.remove(session, run_id, comment_id)
    said = {"run": str(run_id), "comment": str(comment_id), "author": comment.author}
    await audit.note(session, by, "comment deleted", project_id=row.run.project_id, **said)


def author_id(by: Principal) -> str:
    """As whom somebody writes: the person, also with one of their keys; else the lineage of the key, or the kind."""
    return str(by.person_id or by.lineage or by.id)


async def _mentioned(session: AsyncSession, row: RunRow, text: str) -> list[str]:
    if "@" not in text:
        return []
    return mentioned(text, await people.names_of_project(session, row.run.project_id, limit=MAX_MENTIONABLE))


async def _comment(session: AsyncSession, run_id: UUID, comment_id: UUID) -> tuple[RunRow, RunComment]:
    row = await _run(session, run_id)
    comment = await rows.get(session, run_id, comment_id)
    if comment is None:
        raise CommentNotFound(comment_id)
    return row, comment


async def _run(session: AsyncSession, run_id: UUID) -> RunRow:
    row = await run_queries.get_row(session, run_id)
    if row is None:
        raise RunNotFound(run_id)
    return row


# Whom a text mentions: an @ and the name of somebody who reads the project.


def mentioned(text: str, names: Iterable[str]) -> list[str]:
    """The names behind an @ in the text, each once, in its order.

    Of two names of which one begins with the other the longer one counts. A name ends where no letter or digit follows,
    and an @ inside a word, as in an address, mentions nobody. Capitals do not matter.

    Args:
        text: As it was written.
        names: What people are called.
    """
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    found: dict[str, None] = {}
    for at, letter in enumerate(text):
        if letter != "@" or (at and text[at - 1].isalnum()):
            continue
        name = next((one for one in longest_first if _begins(text, at + 1, one)), None)
        if name is not None:
            found[name] = None
    return list(found)


def _begins(text: str, at: int, name: str) -> bool:
    end = at + len(name)
    return text[at:end].casefold() == name.casefold() and not text[end : end + 1].isalnum()
