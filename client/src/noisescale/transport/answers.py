"""What to do about the server's answer: the table of `docs/wire.md`, line by line."""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

MAX_RETRY_AFTER_SECONDS = 3600.0
KEY_RETRY_SECONDS = 60.0
"""For another key, or for a server that reads this version."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from a POST.

    Attributes:
        status: HTTP status.
        body: The JSON object; empty where the body is none.
        retry_after: The header as sent.
    """

    status: int
    body: Mapping[str, object]
    retry_after: str | None = None


class Action(Enum):
    """What the uploader does next."""

    ADVANCE = auto()
    RESEND_RUN = auto()
    REWIND = auto()
    NEW_STREAM = auto()
    SPLIT = auto()
    WAIT = auto()
    BACK_OFF = auto()
    STOP = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """An action with its number.

    Attributes:
        action: What to do.
        seq: Last acknowledged record for ADVANCE, expected one for REWIND.
        wait_seconds: For WAIT.
    """

    action: Action
    seq: int = 0
    wait_seconds: float = 0.0


def decide(answer: Answer) -> Decision:
    """What to do about an answer; anything unknown is tried again with backoff."""
    problem = str(answer.body.get("type", ""))
    match answer.status:
        case 200:
            return _numbered(Action.ADVANCE, answer.body.get("acked_seq"))
        case 404 if problem.endswith("/errors/run-not-found"):
            return Decision(Action.RESEND_RUN)
        case 409 if problem.endswith("/errors/stream-gap"):
            return _numbered(Action.REWIND, answer.body.get("expected_seq"))
        case 409 if problem.endswith("/errors/stream-conflict"):
            return Decision(Action.NEW_STREAM)
        case 400 | 413 | 415 | 422:
            return Decision(Action.SPLIT)
        case 401 | 403 | 426:
            return Decision(Action.WAIT, wait_seconds=KEY_RETRY_SECONDS)
        case 410:
            return Decision(Action.STOP)
        case 429 | 503:
            seconds = retry_after_seconds(answer.retry_after)
            return Decision(Action.BACK_OFF) if seconds is None else Decision(Action.WAIT, wait_seconds=seconds)
    return Decision(Action.BACK_OFF)


def acked_in(answer: Answer) -> int | None:
    """Up to which record a server has an account, by its answer to the question; None where it does not say."""
    if answer.status == 404 and str(answer.body.get("type", "")).endswith("/errors/stream-not-found"):
        return 0
    decision = decide(answer)
    return decision.seq if decision.action is Action.ADVANCE else None


def epoch_in(answer: Answer) -> str | None:
    """Which life of its data a server is in; None where it does not say."""
    epoch = answer.body.get("epoch")
    return epoch if isinstance(epoch, str) else None


def _numbered(action: Action, seq: object) -> Decision:
    is_number = isinstance(seq, int) and not isinstance(seq, bool)
    return Decision(action, seq=seq) if is_number else Decision(Action.BACK_OFF)  # type: ignore[arg-type]


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
    except ValueError:
        return -1.0
