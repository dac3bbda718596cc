"""Telling of a comment that mentions people: by the project's rules of that kind, in the comment's own transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.alerts.watch import rule_of
from noisescale_server.storage.alerts import outbox, rows
from noisescale_server.storage.comments import RunComment
from noisescale_server.storage.platform.tables import Run

LONGEST_QUOTE: Final = 300
MICROSECONDS: Final = 1_000_000


async def tell(session: AsyncSession, run: Run, comment: RunComment, names: Sequence[str], *, now: datetime) -> None:
    """Write down for each rule of the project that waits for it that these people are mentioned, and owe it.

    Args:
        session: Of the transaction that writes the comment.
        run: That it is about.
        comment: As it is written.
        names: Of whom to tell; nobody is told of none.
        now: The server's clock.
    """
    if not names:
        return
    for stored in await rows.rules_of(session, run.project_id):
        rule = rule_of(stored)
        if rule.kind != "mentioned":
            continue
        is_muted = rule.is_muted(now)
        event_id = await rows.add_event(
            session,
            project_id=run.project_id,
            rule_id=rule.id,
            rule_name=stored.name,
            kind=rule.kind,
            run_id=run.id,
            run_name=run.name,
            # an event of a rule and a run needs a number of its own; comments are made one after the other
            number=int(now.timestamp() * MICROSECONDS),
            sentence=sentence(comment, names),
            is_muted=is_muted,
            happened_at=now,
        )
        if event_id is not None and not is_muted:
            await outbox.owe(session, event_id, run.project_id, now=now)


def sentence(comment: RunComment, names: Sequence[str]) -> str:
    """Who mentions whom, and what is said.

    Args:
        comment: That mentions them.
        names: Of those of whom to tell.
    """
    text = " ".join(comment.text.split())
    quote = text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 1]}…"
    return f"{comment.author} mentions {', '.join(names)} in a comment: “{quote}”"
