"""What to do about the server's answer: the table of `docs/wire.md`, line by line.

Between a job and its server stand proxies, which answer in its place: with a page, with JSON of their own, with
nothing, under any status. Only what the server itself says about records has a consequence for them. Its refusals are
problems of RFC 9457 whose `type` is `/errors/…`, as they were in every release; whatever else comes is foreign, and
means no more than "try again".
"""

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

MAX_RETRY_AFTER_SECONDS = 3600.0
MAX_FOREIGN_SECONDS = 60.0
"""What a proxy may ask for: it does not know when the server behind it is back."""
REFUSED_RETRY_SECONDS = 60.0
"""For another key, or for a server that reads what is sent."""

OUR_TYPE = re.compile(r"/errors/([a-z0-9-]+)")
WHOLE_BODY = "body"
"""The field that the server names where it could not read a batch at all: damaged on its way, for all anyone knows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from a request.

    Attributes:
        status: HTTP status.
        body: The JSON object; empty where the body is none.
        retry_after: The header as sent.
    """

    status: int
    body: Mapping[str, object]
    retry_after: str | None = None

    @property
    def problem(self) -> str | None:
        """The name of the server's own problem, "stream-gap" of `/errors/stream-gap`; None in what others say."""
        kind, status = self.body.get("type"), self.body.get("status", self.status)
        found = OUR_TYPE.fullmatch(kind) if isinstance(kind, str) and status == self.status else None
        return None if found is None else found[1]

    @property
    def acked_seq(self) -> int | None:
        """Up to which record the server says that it has an account; None where it does not say so."""
        seq = self.body.get("acked_seq")
        is_number = self.status == 200 and isinstance(seq, int) and not isinstance(seq, bool)
        return seq if is_number and isinstance(seq, int) and seq >= 0 else None

    @property
    def is_ours(self) -> bool:
        """Whether a noisescale server says this, for all that can be seen."""
        return self.problem is not None or self.acked_seq is not None

    @property
    def database_id(self) -> str | None:
        """Which database the server has; None where it does not say, and where it is not a server of ours."""
        found = self.body.get("database_id")
        return found if isinstance(found, str) and self.is_ours else None

    def __str__(self) -> str:
        detail = self.body.get("detail")
        if self.problem is not None:
            return f"answered {self.status} {detail if isinstance(detail, str) else ''}".strip()
        return f"answered {self.status}, and not as noisescale does: a proxy on the way, or another server"


class Action(Enum):
    """What the uploader does next."""

    ADVANCE = auto()
    RESEND_RUN = auto()
    REWIND = auto()
    NEW_STREAM = auto()
    SPLIT = auto()
    SHRINK = auto()
    WAIT = auto()
    BACK_OFF = auto()
    STOP = auto()


@dataclass(frozen=True, slots=True)
class NextAction:
    """An action with its number.

    Attributes:
        action: What to do.
        seq: Last acknowledged record for ADVANCE, expected one for REWIND.
        wait_seconds: For WAIT; for BACK_OFF the least pause.
    """

    action: Action
    seq: int = 0
    wait_seconds: float = 0.0


def decide(answer: Answer) -> NextAction:
    """What to do about the answer to a batch; anything unknown or foreign is tried again with backoff."""
    match answer.status, answer.problem:
        case 200, _:
            return _numbered(Action.ADVANCE, answer.acked_seq)
        case 404, "run-not-found":
            return NextAction(Action.RESEND_RUN)
        case 409, "stream-gap":
            return _numbered(Action.REWIND, answer.body.get("expected_seq"))
        case 409, "stream-conflict":
            return NextAction(Action.NEW_STREAM)
        case 410, "run-deleted":
            return NextAction(Action.STOP)
        case (413, "body-too-large") | (422, "invalid-input") if not _is_about_the_whole(answer):
            return NextAction(Action.SPLIT)
        case (413, _) | (422, "invalid-input"):
            return NextAction(Action.SHRINK)
        case ((401 | 403 | 415 | 426), str()):
            return NextAction(Action.WAIT, wait_seconds=REFUSED_RETRY_SECONDS)
        case ((429 | 503), problem):
            return _told_to_wait(answer, is_ours=problem is not None)
    return NextAction(Action.BACK_OFF)


def _numbered(action: Action, seq: object) -> NextAction:
    is_number = isinstance(seq, int) and not isinstance(seq, bool)
    return NextAction(action, seq=seq) if is_number else NextAction(Action.BACK_OFF)  # type: ignore[arg-type]


def _is_about_the_whole(answer: Answer) -> bool:
    """Whether the server could read nothing of a batch, which says nothing about any of its records."""
    errors = answer.body.get("errors")
    fields = [one.get("field") for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    return bool(fields) and set(fields) == {WHOLE_BODY}


def _told_to_wait(answer: Answer, *, is_ours: bool) -> NextAction:
    seconds = retry_after_seconds(answer.retry_after)
    if seconds is None:
        return NextAction(Action.BACK_OFF)
    if is_ours:
        return NextAction(Action.WAIT, wait_seconds=seconds)
    return NextAction(Action.BACK_OFF, wait_seconds=min(seconds, MAX_FOREIGN_SECONDS))


def cursor_in(answer: Answer, stream_id: str) -> int | None:
    """Up to which record a server has an account of a stream, by its answer to that question; None: it does not say."""
    if (answer.status, answer.problem) == (404, "stream-not-found"):
        return 0
    return answer.acked_seq if answer.body.get("stream_id") == stream_id else None


def standing_in(answer: Answer) -> int | None:
    """The same by its answer to a heartbeat, which names no stream but the epoch of the data."""
    if (answer.status, answer.problem) == (404, "stream-not-found"):
        return 0
    return answer.acked_seq if epoch_in(answer) is not None else None


def epoch_in(answer: Answer) -> str | None:
    """Which life of its data a server is in; None where it does not say, and where it is not a server of ours."""
    epoch = answer.body.get("epoch")
    return epoch if isinstance(epoch, str) and answer.is_ours else None


def retry_after_seconds(header: str | None) -> float | None:
    """Seconds of a `Retry-After` header, number or date, at most an hour; None where it makes no sense."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        seconds = _seconds_until(header)
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds >= 0 else None


def _seconds_until(date: str) -> float:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return -1.0
