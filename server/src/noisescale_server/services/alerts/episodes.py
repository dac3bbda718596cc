"""When a case is told of: once for as long as it lasts, after it has lasted long enough, and not again too soon.

The same for what happens now and for what has happened, so that a dry run says what would have been sent.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from noisescale_server.services.alerts.rules import Rule


@dataclass(frozen=True, slots=True)
class Episode:
    """How a run stands with a rule.

    Attributes:
        since: Since when it is a case; None: it is none.
        is_told: Whether this time it has been told of.
        told_at: When it was last told of.
        number: How often it has been told of: part of an event's name, so that no two servers tell of one twice.
    """

    since: datetime | None = None
    is_told: bool = False
    told_at: datetime | None = None
    number: int = 0


NEVER = Episode()


def step(rule: Rule, before: Episode, *, is_case: bool, now: datetime) -> tuple[Episode, bool]:
    """How the run stands now, and whether it is to be told of.

    Args:
        rule: That watches.
        before: How it stood when somebody last looked.
        is_case: Whether it is a case now.
        now: The moment.
    """
    if not is_case:
        return replace(before, since=None, is_told=False), False
    since = before.since or now
    is_too_soon = before.told_at is not None and now - before.told_at < rule.again_after
    if before.is_told or is_too_soon or now - since < rule.holds_for:
        return replace(before, since=since), False
    return Episode(since, is_told=True, told_at=now, number=before.number + 1), True
